// How `up` starts each program of a server. This file decides which program can see which secrets and files.
import { chownSync, existsSync, mkdirSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { isAbsolute, join } from 'node:path'
import { confined, type Shown, users } from '#src/kit/confined.ts'
import { allAgentSockets } from '#src/kit/instance.ts'
import { createLog } from '#src/kit/log.ts'
import { nodeCommand, ownCode } from '#src/kit/own-code.ts'
import { startPostgres } from '#src/postgres/embedded.ts'
import type { GateOfHost } from '#src/wire/hosts.ts'
import type { Progress } from '#src/wire/runner-link.ts'
import type { Addresses } from './address.ts'
import { BoundedLog } from './bounded-log.ts'
import type { UpConfig } from './config.ts'
import type { DashboardPlace } from './dashboard/ensure.ts'
import { type DataDirectory, runnerSockets } from './data-directory.ts'
import { startNodeProgram } from './node-program.ts'
import type { Program } from './supervised.ts'

type Secrets = {
  proxyKey: string
  runnerKey: string
  firstKey: string
  encryptionKey: string
  sshGatewayKey: string
  sshHostKey: { privateKey: string; publicKey: string }
  /** Earlier encryption keys, with commas between them. Empty if the operator has never replaced the encryption key. */
  olderEncryptionKeys: string
}

type ProgramParts = {
  data: DataDirectory
  config: UpConfig
  addresses: Addresses
  port: number
  secrets: Secrets
  /** Resolves with the URL of the database when the database first accepts connections. Control does not start earlier. */
  databaseUrl: Promise<string>
  onProgress: (progress: Progress) => void
  dashboard: DashboardPlace
}

/**
 * The beginning of a program's command line. It makes the kernel send SIGTERM to the program when `up` ends, even if `up` is
 * killed.
 */
const endWithUp = ['setpriv', '--pdeathsig', 'TERM']

/** Returns the certificate files that the settings for telemetry name. A program that sends telemetry must see these files. */
const telemetryFiles = ({ telemetry }: UpConfig): Shown[] =>
  Object.entries(telemetry)
    .filter(([name, path]) => /_(CERTIFICATE|CLIENT_KEY)$/.test(name) && isAbsolute(path) && existsSync(path))
    .map(([, path]) => ({ from: path }))

const unprivileged = (
  name: 'control' | 'gate' | 'ssh-gateway',
  parts: Pick<ProgramParts, 'data' | 'config'>,
  { port, own }: { port: number; own: readonly Shown[] },
): string[] =>
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
    mayBindLowPorts: port < 1024,
    endsWith: 'SIGTERM',
  })

/** Returns the directory of the database's socket, which control must see. Returns an empty list for a database on the network. */
const databaseSocket = (url: string): Shown[] => {
  const directory = new URL(url).searchParams.get('host') ?? ''
  return isAbsolute(directory) ? [{ from: directory }] : []
}

const logOf = ({ data }: Pick<ProgramParts, 'data'>, name: string) => new BoundedLog(join(data.log, `${name}.log`))

/**
 * Returns the directory for a program's compiled code, which halves the time of the next start. Only the program's user can write
 * to it, so that no program runs code that another user could change.
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
  name: 'control' | 'gate' | 'runner' | 'ssh-gateway',
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

/**
 * Returns the settings for image registries. Control needs these settings to test the registry accounts of organizations, and
 * runners to pull images.
 */
const registrySettings = ({ runnerSettings }: UpConfig): Record<string, string> =>
  Object.fromEntries(
    ['ALCOVE_REGISTRIES', 'ALCOVE_PRIVATE_REGISTRIES', 'ALCOVE_PLAIN_REGISTRIES'].flatMap((name) =>
      runnerSettings[name] === undefined ? [] : [[name, runnerSettings[name]]],
    ),
  )

const sshSettingsOfControl = ({ addresses: { ssh }, secrets }: ProgramParts): Record<string, string> =>
  ssh === undefined
    ? {}
    : {
        ALCOVE_SSH_GATEWAY_KEY: secrets.sshGatewayKey,
        ALCOVE_SSH_URL: ssh.publicUrl,
        ALCOVE_SSH_PUBLIC_HOST_KEY: secrets.sshHostKey.publicKey,
      }

export const controlProgram = (parts: ProgramParts): Program => {
  const { addresses, secrets } = parts
  const log = logOf(parts, 'control')
  return {
    name: 'control',
    start: async () => {
      const databaseUrl = await parts.databaseUrl
      return startNodeProgram({
        name: 'control',
        command: unprivileged('control', parts, {
          port: parts.port,
          own: [...databaseSocket(databaseUrl), { from: parts.dashboard.all }],
        }),
        log,
        env: environment(parts, 'control', {
          ALCOVE_DATABASE_URL: databaseUrl,
          ALCOVE_LISTEN: addresses.control,
          ...(addresses.hosts && { ALCOVE_HOSTS_LISTEN: addresses.hosts.control }),
          ALCOVE_PUBLIC_URL: addresses.publicUrl,
          ALCOVE_PROXY_URL: addresses.publicProxyUrl,
          ALCOVE_PROXY_KEY: secrets.proxyKey,
          ALCOVE_RUNNER_KEY: secrets.runnerKey,
          ALCOVE_FIRST_KEY: secrets.firstKey,
          ...sshSettingsOfControl(parts),
          ALCOVE_ENCRYPTION_KEY: secrets.encryptionKey,
          ALCOVE_OLDER_ENCRYPTION_KEYS: secrets.olderEncryptionKeys,
          ALCOVE_OVERCOMMIT: parts.config.overcommit,
          ALCOVE_MOST_WARM: String(parts.config.mostWarm),
          ALCOVE_DASHBOARD_DIR: parts.dashboard.directory,
          ...parts.config.controlSettings,
          ...registrySettings(parts.config),
        }),
      })
    },
  }
}

/** What a gate must know so that gates of other machines can call it. */
type GateForPeers = {
  gate: GateOfHost
  /** Directory of the gate's certificate. */
  certificates: string
  /** Resolves when the gate's certificate is in the directory `certificates`. The gate does not start earlier. */
  hasCertificates: Promise<void>
}

/** What is needed to start a gate, also on a machine without the other programs of a server. */
type GateProgramParts = Pick<ProgramParts, 'data' | 'config' | 'port'> & {
  addresses: Pick<Addresses, 'gate' | 'controlUrl' | 'publicProxyUrl'>
  /** `proxyKey`: absent if the gate authenticates to control with its certificate. */
  secrets: Partial<Pick<Secrets, 'proxyKey'>>
  peers?: GateForPeers | undefined
}

export const gateProgram = (parts: GateProgramParts): Program => {
  const { addresses, secrets, peers } = parts
  const log = logOf(parts, 'gate')
  return {
    name: 'gate',
    start: async () => {
      await peers?.hasCertificates
      return await startNodeProgram({
        name: 'gate',
        command: unprivileged('gate', parts, {
          port: parts.port,
          own: [
            { from: runnerSockets },
            { from: allAgentSockets },
            ...(peers === undefined ? [] : [{ from: peers.certificates }]),
          ],
        }),
        log,
        env: environment(parts, 'gate', {
          ALCOVE_LISTEN: addresses.gate,
          ALCOVE_CONTROL_URL: addresses.controlUrl,
          ...(secrets.proxyKey !== undefined && { ALCOVE_PROXY_KEY: secrets.proxyKey }),
          ALCOVE_PROXY_URL: addresses.publicProxyUrl,
          ALCOVE_RUNNER_SOCKET: parts.data.runnerSocket,
          ...(peers && {
            ALCOVE_CERTIFICATES_DIR: peers.certificates,
            ALCOVE_GATE_ID: peers.gate.id,
            ALCOVE_GATE_PEERS_LISTEN: peers.gate.address ?? '',
          }),
          // These values make glibc return each freed block of 32 KiB or more to the kernel immediately.
          MALLOC_MMAP_THRESHOLD_: '32768',
          MALLOC_ARENA_MAX: '2',
          ...parts.config.gateSettings,
        }),
      })
    },
  }
}

export const sshGatewayProgram = (parts: ProgramParts, { host, port }: { host: string; port: number }): Program => {
  const { addresses, secrets } = parts
  const log = logOf(parts, 'ssh-gateway')
  return {
    name: 'ssh-gateway',
    start: () =>
      startNodeProgram({
        name: 'ssh-gateway',
        command: unprivileged('ssh-gateway', parts, { port, own: [] }),
        log,
        env: environment(parts, 'ssh-gateway', {
          ALCOVE_LISTEN: `${isIPv6(host) ? `[${host}]` : host}:${port}`,
          ALCOVE_CONTROL_URL: addresses.controlUrl,
          ALCOVE_GATE_URL: addresses.gateUrl,
          ALCOVE_SSH_GATEWAY_KEY: secrets.sshGatewayKey,
          ALCOVE_SSH_HOST_KEY: secrets.sshHostKey.privateKey,
          MALLOC_ARENA_MAX: '2',
        }),
      }),
  }
}

/** What is needed to start a runner, also on a machine without the other programs of a server. */
type RunnerProgramParts = Pick<ProgramParts, 'data' | 'config' | 'onProgress'> & {
  addresses: Pick<Addresses, 'controlUrl'>
  /** `runnerKey`: absent if the runner authenticates to control with its certificate. */
  secrets: Partial<Pick<Secrets, 'runnerKey'>>
  /** Directory of the runner's certificate. */
  certificates?: string
  /** The gate through which the runner's sandboxes are reached. */
  gate: GateOfHost
}

export const runnerProgram = (parts: RunnerProgramParts): Program => {
  const { addresses, secrets, data, config, gate } = parts
  const log = logOf(parts, 'runner')
  return {
    name: 'runner',
    start: (onRefused) =>
      startNodeProgram({
        name: 'runner',
        // This option makes Node collect the short-lived buffers of streams before they have reached tens of MB.
        command: [...endWithUp, ...nodeCommand('bin/runner.ts', '--max-semi-space-size=8')],
        log,
        onProgress: parts.onProgress,
        onRefused,
        env: environment(parts, 'runner', {
          ALCOVE_CONTROL_URL: addresses.controlUrl,
          ...(secrets.runnerKey !== undefined && { ALCOVE_RUNNER_KEY: secrets.runnerKey }),
          ...(parts.certificates !== undefined && { ALCOVE_CERTIFICATES_DIR: parts.certificates }),
          ALCOVE_GATE_ID: gate.id,
          ...(gate.address !== undefined && { ALCOVE_GATE_ADDRESS: gate.address }),
          ...(gate.publicUrl !== undefined && { ALCOVE_GATE_PUBLIC_URL: gate.publicUrl }),
          // These values make glibc return each freed block of 32 KiB or more to the kernel immediately.
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

/**
 * Describes the program PostgreSQL. `onUrl` is called with the database's URL each time that PostgreSQL begins to serve. The URL is
 * always the same.
 */
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
