// The embedded PostgreSQL, which `up` runs as a child process. PostgreSQL never runs as root. Clients can reach it only by a unix
// socket and with a password.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, chown, lchown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import postgres from 'postgres'
import { confined } from '#src/kit/confined.ts'
import type { Logger } from '#src/kit/log.ts'
import { syncPath } from '#src/kit/sync-path.ts'
import { endPrevious, socketPath } from './previous.ts'
import { installPrograms } from './programs.ts'
import { connectionFrom } from './url.ts'

type PostgresParts = {
  /** A directory for PostgreSQL's programs, its data (the cluster) and its password. Nothing else uses the directory. */
  directory: string
  /** Directory of the unix socket. If it does not exist, it is created, and `uid` owns it. */
  socketDirectory: string
  /** The uid of PostgreSQL's processes, because PostgreSQL refuses to run as root. Without effect if this process is not root. */
  uid: number
  gid: number
  log: Logger
}

export type Postgres = {
  /** URL of the database. Do not log it: it contains the password. */
  url: string
  pid: number
  /** Resolves when the server has ended for any reason. */
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** Stops PostgreSQL within 10 s: ends all connections and writes all data to disk (a checkpoint). May be called twice. */
  stop: () => Promise<void>
}

const role = 'alcove'
const readySeconds = 60

// With these settings, PostgreSQL uses little memory: the database is small, and the sandboxes need the memory.
const settings = {
  listen_addresses: '',
  unix_socket_permissions: '0777',
  max_connections: '60',
  shared_buffers: '32MB',
  work_mem: '2MB',
  maintenance_work_mem: '32MB',
  max_wal_size: '128MB',
  min_wal_size: '32MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_parallel_workers_per_gather: '0',
  autovacuum_max_workers: '1',
  io_method: 'sync',
  jit: 'off',
  huge_pages: 'off',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  log_line_prefix: '%e ', // starts each line of the log with the SQLSTATE
  log_checkpoints: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
}

type Identity = { uid?: number; gid?: number }

/** Starts the PostgreSQL with the data in `directory`. Resolves when it accepts connections. The first start creates the data. */
export const startPostgres = async (parts: PostgresParts): Promise<Postgres> => {
  const { directory, socketDirectory, log } = parts
  const identity: Identity = process.getuid?.() === 0 ? { uid: parts.uid, gid: parts.gid } : {}
  if (`${socketPath(socketDirectory)}.lock`.length > 107) {
    throw new Error(`The path ${socketDirectory} is too long for a unix socket.`)
  }
  await mkdir(directory, { recursive: true })
  await mkdir(socketDirectory, { recursive: true })
  if (identity.uid !== undefined) {
    await chmod(directory, 0o711)
    await chown(socketDirectory, parts.uid, parts.gid)
  }
  const { root, version } = await installPrograms(directory)
  const cluster = join(directory, 'cluster')
  const commandOf = (program: string, args: readonly string[]): string[] => {
    const command = [join(root, 'bin', program), ...args]
    if (identity.uid === undefined) return command
    const shown = [directory, socketDirectory].map((from) => ({ from, isWritable: true }))
    return confined({ command, uid: identity.uid, shown, sockets: 'unix', hasProcesses: true, endsWith: 'SIGINT' })
  }
  if (!existsSync(cluster)) await makeCluster({ commandOf, directory, cluster, identity, log })
  await checkVersion(cluster, version)
  await endPrevious(cluster, socketDirectory, log)
  const password = (await readFile(join(directory, 'password'), 'utf8')).trim()
  const url = `postgresql://${role}:${password}@localhost/${role}?host=${encodeURIComponent(socketDirectory)}`
  return await launch({ commandOf, cluster, socketDirectory, url, log })
}

const checkVersion = async (cluster: string, version: string) => {
  const found = (await readFile(join(cluster, 'PG_VERSION'), 'utf8')).trim()
  const wanted = version.split('.')[0]
  if (found !== wanted) throw new Error(`${cluster} was made by PostgreSQL ${found}; this Alcove brings ${wanted}.`)
}

const give = async (path: string, { uid, gid }: Identity) => {
  if (uid !== undefined && gid !== undefined) await lchown(path, uid, gid)
}

/** Returns the command line that runs one of PostgreSQL's programs with these arguments. */
type CommandOf = (program: string, args: readonly string[]) => string[]

type Making = { commandOf: CommandOf; directory: string; cluster: string; identity: Identity; log: Logger }

const makeCluster = async ({ commandOf, directory, cluster, identity, log }: Making) => {
  log.info({ cluster }, 'making a new PostgreSQL cluster')
  const unfinished = `${cluster}.unfinished`
  const passwordFile = join(directory, 'password')
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { mode: 0o700 })
  await writeFile(passwordFile, `${randomBytes(24).toString('hex')}\n`, { mode: 0o600 })
  for (const path of [unfinished, passwordFile]) await give(path, identity)
  await run(commandOf('initdb', initdbArguments(unfinished, passwordFile)), log)
  if (identity.uid !== undefined) await chown(passwordFile, 0, 0)
  await syncPath(passwordFile)
  // The cluster gets its final name when it is complete. If this start fails earlier, the next start makes a new cluster.
  await rename(unfinished, cluster)
  await syncPath(directory)
}

const initdbArguments = (cluster: string, passwordFile: string) => [
  `--pgdata=${cluster}`,
  `--username=${role}`,
  `--pwfile=${passwordFile}`,
  '--auth=scram-sha-256',
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--data-checksums',
  '--no-instructions',
]

// This process's own environment may contain secrets, and its PG* variables would change what the programs do.
const environment = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }

/** Logs what a PostgreSQL program prints. Also keeps the last lines, for the message of an error. */
const tellLines = (stream: Readable, log: Logger) => {
  const said: string[] = []
  createInterface({ input: stream }).on('line', (line) => {
    if (said.push(line) > 20) said.shift()
    // 57P: PostgreSQL refused a connection because it was starting or stopping, which is normal.
    if (/^(?!57P)\w{5} (FATAL|PANIC)/.test(line)) log.warn(line)
    else log.debug(line)
  })
  return said
}

const run = async ([program = '', ...args]: readonly string[], log: Logger) => {
  const child = spawn(program, args, { cwd: '/', env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = [tellLines(child.stdout, log), tellLines(child.stderr, log)]
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0) throw new Error(`PostgreSQL's cluster could not be made: ${said.flat().join('\n')}`)
}

type Launching = {
  commandOf: CommandOf
  cluster: string
  socketDirectory: string
  url: string
  log: Logger
}

const launch = async ({ commandOf, cluster, socketDirectory, url, log }: Launching): Promise<Postgres> => {
  const given = { ...settings, unix_socket_directories: socketDirectory }
  const set = Object.entries(given).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const [program = '', ...args] = commandOf('postgres', ['-D', cluster, ...set])
  const child = spawn(program, args, {
    cwd: '/',
    env: environment,
    stdio: ['ignore', 'ignore', 'pipe'],
    // A process session of its own (setsid): Ctrl-C in a terminal then reaches only `up`, which stops all programs in order.
    detached: true,
  })
  const said = tellLines(child.stderr, log)
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  let isRunning = true
  exited.then(
    () => (isRunning = false),
    () => (isRunning = false),
  )
  const stop = async () => {
    // After SIGINT, PostgreSQL writes a checkpoint and exits. After SIGQUIT, it exits immediately, and its next start repairs
    // the data from the write-ahead log.
    for (const [name, seconds] of [['SIGINT', 6] as const, ['SIGQUIT', 2] as const, ['SIGKILL', 2] as const]) {
      if (!isRunning) return
      child.kill(name)
      const waiting = new AbortController()
      await Promise.race([exited, pause(seconds * 1000, undefined, { signal: waiting.signal })]).finally(() =>
        waiting.abort(),
      )
    }
  }
  try {
    await waitUntilReady(url, () => isRunning, exited)
  } catch (cause) {
    await stop().catch(() => {})
    throw new Error(`PostgreSQL did not start: ${said.join('\n') || cause}`, { cause })
  }
  return { url, pid: child.pid!, exited, stop }
}

/** Waits until PostgreSQL answers a query. Creates our database if it does not exist yet. */
const waitUntilReady = async (url: string, isRunning: () => boolean, exited: Promise<unknown>) => {
  const { url: address, connection } = connectionFrom(url)
  const ask = async () => {
    const sql = postgres(address, {
      ...connection,
      database: 'postgres',
      max: 1,
      connect_timeout: 5,
      onnotice: () => {},
      fetch_types: false,
    })
    try {
      const [found] = await sql`select 1 from pg_database where datname = ${role}`
      if (!found) await sql.unsafe(`create database ${role}`)
    } finally {
      await sql.end({ timeout: 1 })
    }
  }
  let last: unknown
  for (const end = Date.now() + readySeconds * 1000; Date.now() < end && isRunning(); ) {
    try {
      return await ask()
    } catch (error) {
      last = error
      if ((error as { code?: string }).code === '28P01') break // retrying is useless: the password is wrong
    }
    const waiting = new AbortController()
    await Promise.race([exited, pause(20, undefined, { signal: waiting.signal })]).finally(() => waiting.abort())
  }
  throw last ?? new Error(`it was not ready after ${readySeconds} s`)
}
