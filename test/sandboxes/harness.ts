// A real platform for a test: `./alcove up` on a data directory of its own, purged afterwards.
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

/** A program that `up` runs, or `up` itself. */
export type Program = 'control' | 'gate' | 'runner' | 'postgres' | 'up'

export type Platform = {
  /** `http://127.0.0.1:<port>`; the API is below `/api`. */
  url: string
  key: string
  /** The data directory. */
  data: string
  /** Makes an API call; `path` is below `/api`. */
  api: (method: string, path: string, body?: unknown) => Promise<{ status: number; body: Record<string, unknown> }>
  /** SIGKILL to one program, by its own pid. */
  kill: (program: Program) => Promise<void>
  /** SIGKILL to `up` and everything it runs, at once. */
  killAll: () => Promise<void>
  /** Runs `up` again after it has ended, and waits until it is ready. */
  start: () => Promise<void>
  stop: () => Promise<void>
  pidOf: (program: Program) => Promise<number>
  /** Resident bytes of a program. */
  memoryOf: (program: Program) => Promise<number>
  /** A host process in one of this instance's sandbox cgroups whose command line contains this. */
  hostPid: (commandLine: string) => Promise<number | undefined>
  /**
   * A line for each thing of this instance's sandboxes that is on the host: processes and cgroups, mounts besides the
   * pool's, directories and subvolumes, network namespaces in use (spare ones of the pool do not count).
   */
  leftovers: () => Promise<string[]>
  [Symbol.asyncDispose]: () => Promise<void>
}

const launcher = resolve(import.meta.dirname, '../../alcove')
/** The first start of a machine builds the default image. */
const startSeconds = 270
const maxOutput = 64 * 1024

/** Where `up` said what, for the message of a test that fails. */
type Up = { child: ChildProcess; output: () => string }

/** Starts `./alcove up` and answers when it says that it is ready. */
export const startUp = async (data: string, port: number, env: Record<string, string> = {}): Promise<Up> => {
  const child = spawn(launcher, ['up', '--data', data, '--port', String(port)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // What a test counts on the host are its own sandboxes, unless it wants warm ones.
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

const caller =
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
    // An answer that is a string is plain text.
    const isJson = reply.headers.get('content-type')?.includes('json') ?? false
    return { status: reply.status, body: text === '' ? {} : isJson ? JSON.parse(text) : text }
  }

/** What can be asked of a server that runs, whoever started it. */
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

/** A server of the test's own. Whatever the test does to it, disposing removes it from the host, and fails if it cannot. */
const ownPlatform = async ({ env = {}, prepare = () => {} }: OwnOptions): Promise<Platform> => {
  const directory = mkdtempSync(join(process.env['ALCOVE_TEST_SERVERS'] ?? tmpdir(), 'alcove-test-'))
  prepare(directory)
  const port = await freePorts(2)
  let up = await startUp(directory, port, env).catch(async (error: unknown) => {
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
      // `up` first, so that it starts none of them again.
      for (const identity of running) signalProcess(identity, 'SIGKILL')
      for (const identity of running) assert.ok(await waitUntilGone(identity, 10_000))
    },
    start: async () => {
      up = await startUp(directory, port, env)
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
  /** What is to be in its data directory before it starts. */
  prepare?: (directory: string) => void
}

/**
 * A running platform: the shared one of `ALCOVE_TEST_SERVER` if there is one, else (and with `own`) one of its own, whose
 * `up` has `env` in its environment.
 */
export const platform = async (options: { own?: boolean } & OwnOptions = {}): Promise<Platform> => {
  const shared = process.env['ALCOVE_TEST_SERVER']
  return shared && !options.own ? sharedPlatform(shared) : ownPlatform(options)
}
