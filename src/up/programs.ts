// The programs of one machine: how each is started, as whom, and what it is told. The table of trust zones.
import { chownSync, existsSync, mkdirSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { confined, type Shown, users } from '#src/kit/confined.ts'
import { allAgentSockets } from '#src/kit/instance.ts'
import { createLog } from '#src/kit/log.ts'
import { nodeCommand, ownCode } from '#src/kit/own-code.ts'
import { startPostgres } from '#src/postgres/embedded.ts'
import type { Progress } from '#src/wire/runner-link.ts'
import type { Addresses } from './address.ts'
import { BoundedLog } from './bounded-log.ts'
import type { UpConfig } from './config.ts'
import { type DataDirectory, runnerSockets } from './data-directory.ts'
import { startNodeProgram } from './node-program.ts'
import type { Program } from './supervised.ts'

type Secrets = {
  proxyKey: string
  runnerKey: string
  firstKey: string
  encryptionKey: string
  /** With commas between; empty unless an operator has replaced the key. */
  olderEncryptionKeys: string
}

type ProgramParts = {
  data: DataDirectory
  config: UpConfig
  addresses: Addresses
  port: number
  secrets: Secrets
  /** Settles with the URL of the database as soon as it takes connections. */
  databaseUrl: Promise<string>
  onProgress: (progress: Progress) => void
}

/** The kernel sends the signal when `up` ends, also when that is killed. */
const endWithUp = ['setpriv', '--pdeathsig', 'TERM']

/** Certificates that the settings of telemetry name. */
const telemetryFiles = ({ telemetry }: UpConfig): Shown[] =>
  Object.entries(telemetry)
    .filter(([name, path]) => /_(CERTIFICATE|CLIENT_KEY)$/.test(name) && isAbsolute(path) && existsSync(path))
    .map(([, path]) => ({ from: path }))

const unprivileged = (name: 'control' | 'gate', parts: ProgramParts, own: readonly Shown[]): string[] =>
  confined({
    command: nodeCommand(`bin/${name}.ts`),
    uid: users[name],
    hidden: [parts.data.path],
    shown: [
      ...ownCode(),
      { from: codeCacheOf(parts, name, users[name]), isWritable: true },
      ...telemetryFiles(parts.config),
      ...own,
    ],
    sockets: 'internet',
    mayBindLowPorts: parts.port < 1024,
    endsWith: 'SIGTERM',
  })

/** A directory with the socket of the database; none where it is reached over the network. */
const databaseSocket = (url: string): Shown[] => {
  const directory = new URL(url).searchParams.get('host') ?? ''
  return isAbsolute(directory) ? [{ from: directory }] : []
}

const logOf = ({ data }: Pick<ProgramParts, 'data'>, name: string) => new BoundedLog(join(data.log, `${name}.log`))

/**
 * Where Node keeps the compiled form of a program's code, which halves the time until it serves. Each user has a place of its
 * own: what one could write there, no other will run.
 */
const codeCacheOf = ({ config }: Pick<ProgramParts, 'config'>, name: string, uid: number): string => {
  const shared = join(config.cacheDirectory, 'code')
  const own = join(shared, name)
  mkdirSync(shared, { recursive: true, mode: 0o755 })
  mkdirSync(own, { recursive: true, mode: 0o700 })
  chownSync(own, uid, uid)
  return own
}

const environment = (
  parts: Pick<ProgramParts, 'config'>,
  name: 'control' | 'gate' | 'runner',
  own: Record<string, string>,
) => ({
  PATH: parts.config.path,
  LANG: 'C.UTF-8',
  NODE_COMPILE_CACHE: codeCacheOf(parts, name, name === 'runner' ? 0 : users[name]),
  ALCOVE_LOG_LEVEL: parts.config.logLevel,
  ...parts.config.telemetry,
  OTEL_SERVICE_NAME: `${parts.config.telemetry['OTEL_SERVICE_NAME'] ?? 'alcove'}-${name}`,
  ...own,
})

export const controlProgram = (parts: ProgramParts): Program => {
  const { addresses, secrets } = parts
  const log = logOf(parts, 'control')
  return {
    name: 'control',
    start: async () => {
      const databaseUrl = await parts.databaseUrl
      return startNodeProgram({
        name: 'control',
        command: unprivileged('control', parts, databaseSocket(databaseUrl)),
        log,
        env: environment(parts, 'control', {
          ALCOVE_DATABASE_URL: databaseUrl,
          ALCOVE_LISTEN: addresses.control,
          ALCOVE_PUBLIC_URL: addresses.publicUrl,
          ALCOVE_PROXY_URL: addresses.publicProxyUrl,
          ALCOVE_PROXY_KEY: secrets.proxyKey,
          ALCOVE_RUNNER_KEY: secrets.runnerKey,
          ALCOVE_FIRST_KEY: secrets.firstKey,
          ALCOVE_ENCRYPTION_KEY: secrets.encryptionKey,
          ALCOVE_OLDER_ENCRYPTION_KEYS: secrets.olderEncryptionKeys,
          ALCOVE_OVERCOMMIT: parts.config.overcommit,
          ALCOVE_MOST_WARM: String(parts.config.mostWarm),
          ...parts.config.controlSettings,
        }),
      })
    },
  }
}

export const gateProgram = (parts: ProgramParts): Program => {
  const { addresses, secrets } = parts
  const log = logOf(parts, 'gate')
  return {
    name: 'gate',
    start: () =>
      startNodeProgram({
        name: 'gate',
        command: unprivileged('gate', parts, [{ from: runnerSockets }, { from: allAgentSockets }]),
        log,
        env: environment(parts, 'gate', {
          ALCOVE_LISTEN: addresses.gate,
          ALCOVE_CONTROL_URL: addresses.controlUrl,
          ALCOVE_PROXY_KEY: secrets.proxyKey,
          ALCOVE_PROXY_URL: addresses.publicProxyUrl,
          ALCOVE_RUNNER_SOCKET: parts.data.runnerSocket,
          // glibc would keep what hundreds of streams have let go of; larger pieces go back to the kernel at once.
          MALLOC_MMAP_THRESHOLD_: '32768',
          MALLOC_ARENA_MAX: '2',
          ...parts.config.gateSettings,
        }),
      }),
  }
}

/** What a runner alone needs; it may belong to a control elsewhere. */
type RunnerProgramParts = Pick<ProgramParts, 'data' | 'config' | 'onProgress'> & {
  addresses: Pick<Addresses, 'controlUrl'>
  secrets: Pick<Secrets, 'runnerKey'>
}

export const runnerProgram = (parts: RunnerProgramParts): Program => {
  const { addresses, secrets, data, config } = parts
  const log = logOf(parts, 'runner')
  return {
    name: 'runner',
    start: (onRefused) =>
      startNodeProgram({
        name: 'runner',
        // Most of what streams make is garbage at once. By default Node lets tens of MB of it gather before it collects any.
        command: [...endWithUp, ...nodeCommand('bin/runner.ts', '--max-semi-space-size=8')],
        log,
        onProgress: parts.onProgress,
        onRefused,
        env: environment(parts, 'runner', {
          ALCOVE_CONTROL_URL: addresses.controlUrl,
          ALCOVE_RUNNER_KEY: secrets.runnerKey,
          // glibc would keep what hundreds of streams have let go of; larger pieces go back to the kernel at once.
          MALLOC_MMAP_THRESHOLD_: '32768',
          MALLOC_ARENA_MAX: '2',
          ALCOVE_RUNNER_DIR: data.runner,
          ALCOVE_RUNNER_SOCKET: data.runnerSocket,
          ALCOVE_RUNNER_SOCKET_GID: String(users.gate),
          ALCOVE_CACHE_DIR: config.cacheDirectory,
          ...config.runnerSettings,
          ...config.archive,
        }),
      }),
  }
}

/** `onUrl` hears the address each time it serves; it stays the same across restarts. */
export const postgresProgram = (
  { data, config }: Pick<ProgramParts, 'data' | 'config'>,
  directory: string,
  onUrl: (url: string) => void,
): Program => {
  const file = new BoundedLog(join(data.log, 'postgres.log'))
  const log = createLog('postgres', config.logLevel, file)
  return {
    name: 'postgres',
    start: async () => {
      const server = await startPostgres({
        directory,
        socketDirectory: data.postgresSocket,
        uid: users.postgres,
        gid: users.postgres,
        log,
      })
      onUrl(server.url)
      return {
        pid: server.pid,
        ready: Promise.resolve(),
        ended: server.exited.then(
          ({ code, signal }) => (signal ? `killed by ${signal}` : `exit code ${code}`),
          (error: Error) => error.message,
        ),
        stop: () => void server.stop(),
      }
    },
  }
}
