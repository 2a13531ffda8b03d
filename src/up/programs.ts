// The programs of one machine: how each is started, as whom, and what it is told. The table of trust zones.
import { join, relative, resolve } from 'node:path'
import { createLog } from '#src/kit/log.ts'
import { startPostgres } from '#src/postgres/embedded.ts'
import type { Addresses } from './address.ts'
import { BoundedLog } from './bounded-log.ts'
import type { UpConfig } from './config.ts'
import { confined, unconfined } from './confine.ts'
import { type DataDirectory, uids } from './data-directory.ts'
import { type Progress, startNodeProgram } from './node-program.ts'
import type { Program } from './supervised.ts'

export type Secrets = { proxyKey: string; runnerKey: string; firstKey: string }

export type ProgramParts = {
  data: DataDirectory
  config: UpConfig
  addresses: Addresses
  port: number
  secrets: Secrets
  /** Settles with the URL of the database as soon as it takes connections. */
  databaseUrl: Promise<string>
  onProgress: (progress: Progress) => void
}

const code = resolve(import.meta.dirname, '../..')

/** A program without privileges sees the code at another place, since it may not pass through the code's parents. */
const seenAt = (place: string, path: string) => join(place, relative(code, path))

const unprivileged = (name: 'control' | 'proxy', { data, port }: ProgramParts): string[] =>
  confined({
    command: [seenAt(data.codeView, process.execPath), join(data.codeView, 'bin', `${name}.ts`)],
    uid: uids[name],
    views: [{ source: code, at: data.codeView }],
    mayBindLowPorts: port < 1024,
  })

const logOf = ({ data }: ProgramParts, name: string) => new BoundedLog(join(data.log, `${name}.log`))

const environment = ({ config }: ProgramParts, own: Record<string, string>) => ({
  PATH: config.path,
  LANG: 'C.UTF-8',
  ALCOVE_LOG_LEVEL: config.logLevel,
  ...own,
})

export const controlProgram = (parts: ProgramParts): Program => {
  const { addresses, secrets } = parts
  const log = logOf(parts, 'control')
  return {
    name: 'control',
    start: async () =>
      startNodeProgram({
        command: unprivileged('control', parts),
        log,
        env: environment(parts, {
          ALCOVE_DATABASE_URL: await parts.databaseUrl,
          ALCOVE_LISTEN: addresses.control,
          ALCOVE_PUBLIC_URL: addresses.publicUrl,
          ALCOVE_PROXY_URL: addresses.publicProxyUrl,
          ALCOVE_PROXY_KEY: secrets.proxyKey,
          ALCOVE_RUNNER_KEY: secrets.runnerKey,
          ALCOVE_FIRST_KEY: secrets.firstKey,
        }),
      }),
  }
}

export const proxyProgram = (parts: ProgramParts): Program => {
  const { addresses, secrets } = parts
  const log = logOf(parts, 'proxy')
  return {
    name: 'proxy',
    start: () =>
      startNodeProgram({
        command: unprivileged('proxy', parts),
        log,
        env: environment(parts, {
          ALCOVE_LISTEN: addresses.proxy,
          ALCOVE_CONTROL_URL: addresses.controlUrl,
          ALCOVE_PROXY_KEY: secrets.proxyKey,
        }),
      }),
  }
}

export const runnerProgram = (parts: ProgramParts): Program => {
  const { addresses, secrets, data, config } = parts
  const log = logOf(parts, 'runner')
  return {
    name: 'runner',
    start: () =>
      startNodeProgram({
        command: unconfined([process.execPath, join(code, 'bin', 'runner.ts')]),
        log,
        onProgress: parts.onProgress,
        env: environment(parts, {
          ALCOVE_CONTROL_URL: addresses.controlUrl,
          ALCOVE_RUNNER_KEY: secrets.runnerKey,
          ALCOVE_RUNNER_DIR: data.runner,
          ALCOVE_RUNNER_SOCKET: data.runnerSocket,
          ALCOVE_RUNNER_SOCKET_GID: String(uids.proxy),
          ...(config.cacheDirectory === undefined ? {} : { ALCOVE_CACHE_DIR: config.cacheDirectory }),
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
        uid: uids.postgres,
        gid: uids.postgres,
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
