// A real server for a test: `./alcove up` with a data directory of its own, which is removed after the test.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { purge } from '#src/cli/purge.ts'
import { identityOf, type ProcessIdentity, signalProcess, waitUntilGone } from '#src/kit/process-identity.ts'
import { dataDirectoryAt, findAdminKey } from '#src/up/data-directory.ts'
import { findRunningUp } from '#src/up/state-file.ts'
import { freePorts } from './free-ports.ts'
import { findHostPid, listSandboxTraces } from './host.ts'
import { smallDefaultIn } from './small-default.ts'

/** A program that `up` runs, or `up` itself. */
export type Program = 'control' | 'gate' | 'runner' | 'postgres' | 'ssh-gateway' | 'up'

export type Platform = {
  /** URL of the server, `http://127.0.0.1:<port>`; the API is below `/api`. */
  url: string
  key: string
  /** The data directory of the server. */
  data: string
  /** Makes an API call with the admin key. `path` begins after `/api`. */
  api: (method: string, path: string, body?: unknown) => Promise<{ status: number; body: Record<string, unknown> }>
  /** Sends SIGKILL to one program, by its pid. */
  kill: (program: Program) => Promise<void>
  /** Sends SIGKILL to `up` and all its programs at the same time. */
  killAll: () => Promise<void>
  /** Runs `up` again after it has ended, and waits until the server is ready. */
  start: () => Promise<void>
  stop: () => Promise<void>
  pidOf: (program: Program) => Promise<number>
  /** Returns the resident memory (RSS) of a program, in bytes. */
  memoryOf: (program: Program) => Promise<number>
  /** Finds a process in a sandbox of this server by a part of its command line. Returns its pid on the host. */
  hostPid: (commandLine: string) => Promise<number | undefined>
  /**
   * Lists what the host still has of this server's sandboxes, such as processes, mounts or subvolumes. Leaves out the pool's mount
   * and the networks for later sandboxes.
   */
  leftovers: () => Promise<string[]>
  [Symbol.asyncDispose]: () => Promise<void>
}

const launcher = resolve(import.meta.dirname, '../../alcove')
/**
 * How many seconds a server may take to start. The first start on a machine takes longest, because it builds the
 * default image.
 */
const startSeconds = 900
const maxOutput = 64 * 1024

/** A running `./alcove up`. `output` returns what `up` has printed, for the error message of a failing test. */
type Up = { child: ChildProcess; output: () => string }

/** Starts `./alcove up`. Returns when `up` has reported that the server is ready. */
export const startUp = async (
  data: string,
  port: number,
  env: Record<string, string> = {},
  more: readonly string[] = [],
): Promise<Up> => {
  const child = spawn(launcher, ['up', '--data', data, '--port', String(port), ...more], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // By default, the server starts no warm sandboxes, because some tests count the sandboxes on the host.
    env: { ALCOVE_MOST_WARM: '0', ...process.env, ...env },
  })
  let text = ''
  const isReady = new Promise<void>((ready) => {
    const read = (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-maxOutput)
      if (text.includes('Alcove is ready')) ready()
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
  })
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(`alcove up ended:\n${text}`)))
  ended.catch(() => {})
  const late = setTimeout(() => child.kill('SIGTERM'), startSeconds * 1000)
  await Promise.race([isReady, ended]).finally(() => clearTimeout(late))
  return { child, output: () => text }
}

const readPlatform = (directory: string) => {
  const data = dataDirectoryAt(directory)
  const up = findRunningUp(data.stateFile)
  const key = findAdminKey(data)
  assert.ok(up && key, `nothing serves ${directory}`)
  return { data, up, key }
}

const identify = (directory: string, program: Program): ProcessIdentity => {
  const { up } = readPlatform(directory)
  if (program === 'up') return up
  const found = up.programs.find(({ name }) => name === program)
  assert.ok(found && found.pid > 0, `${program} does not run`)
  return found
}

const killAndWait = async (identity: ProcessIdentity) => {
  assert.ok(signalProcess(identity, 'SIGKILL'), `process ${identity.pid} is gone already`)
  assert.ok(await waitUntilGone(identity, 10_000), `process ${identity.pid} survived SIGKILL`)
}

/** Returns the function that makes API calls to a server with a key or a token. */
export const caller =
  (url: string, key: string): Platform['api'] =>
  async (method, path, body) => {
    const reply = await fetch(`${url}/api${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(120_000),
    })
    const text = await reply.text()
    // If the content type of an answer is not JSON, `body` is its text.
    const isJson = reply.headers.get('content-type')?.includes('json') ?? false
    return { status: reply.status, body: text === '' ? {} : isJson ? JSON.parse(text) : text }
  }

/** Returns those functions of a `Platform` that work for any running server, even for a server that another process has started. */
const viewOf = (directory: string) => {
  const { up, key, data } = readPlatform(directory)
  const url = `http://127.0.0.1:${up.port}`
  return {
    url,
    key,
    data: data.path,
    api: caller(url, key),
    kill: (program: Program) => killAndWait(identify(directory, program)),
    pidOf: async (program: Program) => identify(directory, program).pid,
    memoryOf: async (program: Program) => {
      const status = readFileSync(`/proc/${identify(directory, program).pid}/status`, 'utf8')
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
    },
    hostPid: async (commandLine: string) => findHostPid(data, commandLine),
    leftovers: async () => listSandboxTraces(data),
  }
}

const sharedPlatform = (directory: string): Platform => {
  const refuse = async () => assert.fail('the shared server is not to be stopped; ask for platform({ own: true })')
  return {
    ...viewOf(directory),
    kill: refuse,
    killAll: refuse,
    start: refuse,
    stop: refuse,
    [Symbol.asyncDispose]: async () => {},
  }
}

/** Starts a server for one test. At the end, removes the server and everything that it has on the host, or fails the test. */
const ownPlatform = async (options: OwnOptions): Promise<Platform> => {
  const servers = process.env['ALCOVE_TEST_SERVERS']
  const directory = mkdtempSync(join(servers ?? tmpdir(), 'alcove-test-'))
  const images = options.image === 'small' ? { ALCOVE_CACHE_DIR: await smallDefaultIn(servers ?? directory) } : {}
  const env = { ...images, ...options.env }
  options.prepare?.(directory)
  const port = await freePorts(5)
  const more = options.hasHosts ? ['--hosts', '127.0.0.1'] : []
  let up = await startUp(directory, port, env, more).catch(async (error: unknown) => {
    await purge(dataDirectoryAt(directory))
    throw error
  })
  const hasEnded = () => up.child.exitCode !== null || up.child.signalCode !== null
  const stop = async () => {
    if (hasEnded()) return
    const ended = once(up.child, 'exit')
    up.child.kill('SIGTERM')
    await ended
  }
  const view = viewOf(directory)
  return {
    ...view,
    kill: async (program) => {
      await view.kill(program)
      if (program === 'up' && !hasEnded()) await once(up.child, 'exit')
    },
    killAll: async () => {
      const { up: state } = readPlatform(directory)
      const running = [state, ...state.programs.filter(({ pid }) => pid > 0)].map(({ pid }) => identityOf(pid))
      // Kill `up` first. Otherwise `up` would start the killed programs again.
      for (const identity of running) signalProcess(identity, 'SIGKILL')
      for (const identity of running) assert.ok(await waitUntilGone(identity, 10_000))
    },
    start: async () => {
      up = await startUp(directory, port, env, more)
    },
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop()
      assert.deepEqual(await purge(dataDirectoryAt(directory)), [], 'left on the host')
    },
  }
}

type OwnOptions = {
  env?: Record<string, string>
  /**
   * `small`: the default image has only a shell and a few programs (small-default.ts). Absent: the server uses the real
   * default image.
   */
  image?: 'small'
  /** Called before the server starts, to put files into the server's data directory. */
  prepare?: (directory: string) => void
  /**
   * Lets other runners on this machine join the server as hosts. Runners connect to the server's port plus 3, and gates to the
   * server's port plus 4.
   */
  hasHosts?: true
}

/**
 * Returns a running server: the server of ALCOVE_TEST_SERVER, which several test files share, or a new server. With `own`, the
 * server is always new.
 */
export const platform = async (options: { own?: boolean } & OwnOptions = {}): Promise<Platform> => {
  const shared = process.env['ALCOVE_TEST_SERVER']
  return shared && !options.own ? sharedPlatform(shared) : ownPlatform(options)
}
