// Runs the commands that an operator types, in the namespaces of each host of a test network.
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { socketPath } from '#src/postgres/previous.ts'
import { startTestPostgres } from '#test/control/test-postgres.ts'
import { smallDefaultIn } from '#test/sandboxes/small-default.ts'
import type { Host, Network, Started } from './namespaces.ts'

const launcher = resolve(import.meta.dirname, '../../alcove')

/** The settings of all machines of a test: the small default image, and one archive store that all machines share. */
export const settingsOf = async ({ directory }: Network): Promise<Record<string, string>> => {
  const store = join(directory, 'archives')
  mkdirSync(store, { recursive: true, mode: 0o700 })
  return {
    ALCOVE_CACHE_DIR: await smallDefaultIn(process.env['ALCOVE_TEST_SERVERS'] ?? directory),
    ALCOVE_ARCHIVE_STORE: `file://${store}`,
    ALCOVE_MOST_WARM: '0',
  }
}

/** Returns the command line of `alcove` with these arguments. */
export const commandOf = (...args: string[]): string[] => [launcher, ...args]

/** Runs `alcove` on a host. Throws if the command fails. Returns the command's standard output. */
export const alcove = async (host: Host, ...args: string[]): Promise<string> => {
  const { code, out, err } = await host.run(commandOf(...args))
  assert.equal(code, 0, `alcove ${args.join(' ')}: ${err}`)
  return out.trim()
}

type Answer = { status: number; body: Record<string, unknown> }

/** Makes an HTTP call with curl, from a host of the network. */
export const call = async (from: Host, key: string, method: string, url: string, body?: unknown): Promise<Answer> => {
  const told = body === undefined ? [] : ['--header', 'content-type: application/json', '--data-binary', '@-']
  const basics = ['--silent', '--show-error', '--max-time', '120', '--write-out', '\n%{http_code}']
  const { code, out, err } = await from.run(
    ['curl', ...basics, '--request', method, '--header', `authorization: Bearer ${key}`, ...told, url],
    { input: body === undefined ? '' : JSON.stringify(body) },
  )
  assert.equal(code, 0, `curl ${method} ${url}: ${err}`)
  const end = out.lastIndexOf('\n')
  const text = out.slice(0, end)
  return {
    status: Number(out.slice(end + 1)),
    body: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : {},
  }
}

export type Server = {
  host: Host
  up: Started
  key: string
  /** Makes a call to the server's API. `path` begins after `/api`. */
  api: (method: string, path: string, body?: unknown) => Promise<Answer>
}

/** Starts a server on `host`. Runners on other hosts may join this server. */
export const startServer = async (host: Host, env: Record<string, string>): Promise<Server> => {
  const options = ['--data', host.data, '--host', '0.0.0.0', '--public-host', host.address, '--hosts', host.address]
  const up = host.start([launcher, 'up', ...options], { env })
  await up.until('Alcove is ready', 600_000)
  const key = await alcove(host, 'key', '--data', host.data)
  const api: Server['api'] = async (method, path, body) =>
    await call(host, key, method, `http://${host.address}:4600/api${path}`, body)
  return { host, up, key, api }
}

/** Adds a runner to the server. Returns the runner's token. */
export const addRunner = ({ host }: Server, name: string): Promise<string> =>
  alcove(host, 'runner', 'add', name, '--data', host.data)

/** Starts a runner on `host`. A token is needed only if the runner has not joined the server before. */
export const startHost = async (
  { host: server }: Pick<Server, 'host'>,
  host: Host,
  env: Record<string, string>,
  { token, options = [] }: { token?: string; options?: readonly string[] } = {},
): Promise<Started> => {
  const told = token === undefined ? [] : ['--token', token]
  const joining = ['runner', '--data', host.data, '--join', `https://${server.address}:4603`, '--host', host.address]
  const started = host.start([launcher, ...joining, ...told, ...options], { env })
  await started.until('has joined', 600_000)
  return started
}

/** Repeats a call until `isSo` returns true for its answer. After the timeout, throws an error with the last answer. */
export const untilAnswer = async (
  ask: () => Promise<Answer>,
  isSo: (answer: Answer) => boolean,
  timeoutMs = 60_000,
): Promise<Answer> => {
  const end = Date.now() + timeoutMs
  for (;;) {
    const answer = await ask()
    if (isSo(answer)) return answer
    assert.ok(Date.now() < end, `last answer: ${JSON.stringify(answer)}`)
    await pause(200)
  }
}

export type TestDatabase = AsyncDisposable & {
  /** The database URL that works on every host of the network. */
  url: string
}

/**
 * Starts a PostgreSQL to which all hosts connect at the address of `host`. So `host.cut()` disconnects the database from the other
 * hosts.
 */
export const startDatabase = async (host: Host): Promise<TestDatabase> => {
  const postgres = await startTestPostgres()
  const url = new URL(postgres.url)
  const socket = socketPath(url.searchParams.get('host') ?? '')
  const relay = host.start([process.execPath, join(import.meta.dirname, 'relay.ts'), host.address, '5432', socket])
  await relay.until('relays')
  url.search = ''
  url.host = `${host.address}:5432`
  return { url: url.href, [Symbol.asyncDispose]: postgres.stop }
}

export type ControlOptions = { database: TestDatabase; encryptionKey: string; firstKey: string; proxyUrl: string }

/**
 * Starts control, and no other program of a server, on a host as an unprivileged user. Clients and runners connect to the address
 * of the host.
 */
export const startControl = async (
  host: Host,
  { database, encryptionKey, firstKey, proxyUrl }: ControlOptions,
  env: Record<string, string> = {},
): Promise<Started> => {
  const settings = {
    DATABASE_URL: database.url,
    ALCOVE_LISTEN: `${host.address}:4600`,
    ALCOVE_HOSTS_LISTEN: `${host.address}:4603`,
    ALCOVE_PUBLIC_URL: `http://${host.address}:4600`,
    ALCOVE_PROXY_URL: proxyUrl,
    ALCOVE_ENCRYPTION_KEY: encryptionKey,
    ALCOVE_FIRST_KEY: firstKey,
  }
  const nobody = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--no-new-privs']
  const started = host.start([...nobody, launcher, 'control'], { env: { ...settings, ...env } })
  await started.until('control serves')
  return started
}
