// The layout of a data directory, and the secrets in it.
//   <data>/alcove-data       marks the directory as Alcove's; created first and removed last
//   <data>/secrets/   0700   one file per secret, 0600
//   <data>/host/     0711   certificates for other machines (hosts/host-files.ts)
//   <data>/postgres/         the database, owned by its own uid
//   <data>/runner/           sandboxes, images and the storage pool
//   <data>/archive/   0700   disks of archived sandboxes, made by the runner, unless another store is configured
//   <data>/log/              one log per program, of limited size
//   <data>/run/       0755   the process that serves this directory now (up.json, up.lock)
// Sockets are elsewhere, because a socket's path has at most 107 bytes. <instance> is a hash of <data>.
//   /run/alcove-<instance>/         sockets of control, gate and PostgreSQL
//   /run/alcove/runners/            the socket of the runner
//   /run/alcove/agents/<instance>/  sockets of the agents; root makes them, the gate's group may connect
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { users } from '#src/kit/confined.ts'
import { agentSocketsOf, allAgentSockets, instanceOf, runDirectoryOf } from '#src/kit/instance.ts'
import { syncPathNow } from '#src/kit/sync-path.ts'
import { Complaint } from './complaint.ts'
import { checkOwner, checkPlace } from './ownership.ts'

export const defaultDataDirectory = '/var/lib/alcove'

/**
 * Directory of the sockets of all runners of this host, including runners that have joined other servers. It must contain nothing
 * else, because every gate sees the whole directory.
 */
export const runnerSockets = '/run/alcove/runners'

export type DataDirectory = ReturnType<typeof dataDirectoryAt>

/** Returns the paths in an existing data directory. */
export const dataDirectoryAt = (directory: string) => {
  const path = realpathSync(directory)
  const instance = instanceOf(path)
  const runtime = runDirectoryOf(instance)
  return {
    path,
    instance,
    secrets: join(path, 'secrets'),
    postgres: join(path, 'postgres'),
    runner: join(path, 'runner'),
    log: join(path, 'log'),
    lockFile: join(path, 'run', 'up.lock'),
    stateFile: join(path, 'run', 'up.json'),
    runtime,
    postgresSocket: join(runtime, 'postgres'),
    runnerSocket: join(runnerSockets, `${instance}.sock`),
    agentSockets: agentSocketsOf(instance),
  }
}

/**
 * Directories that Alcove makes in a data directory. The directory `images` is not in the list, because it belongs to the operator.
 */
export const ownNames = ['secrets', 'host', 'postgres', 'runner', 'archive', 'log', 'run'] as const

/** Directories that a new data directory may contain before the first start: a file system or the operator makes them. */
const namesBefore: readonly string[] = ['lost+found', 'images']

export const markOf = (path: string) => join(path, 'alcove-data')

const markText = 'A data directory of Alcove. "alcove purge" removes what Alcove has made in it.\n'

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

/** Returns whether the path exists. Throws a Complaint (an error for the user) if only root can find out whether it exists. */
const isThere = (path: string): boolean => {
  try {
    statSync(path)
    return true
  } catch (error) {
    if (codeOf(error) === 'EACCES') throw new Complaint(`only root can read ${path}; use sudo`, { cause: error })
    return false
  }
}

/** Writes the file that marks a directory as Alcove's. Alcove neither uses nor removes a data directory without this file. */
export const markAsOurs = (path: string): void => {
  if (!existsSync(markOf(path))) writeFileSync(markOf(path), markText, { mode: 0o644 })
}

const isDirectory = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/**
 * Whether this data directory was made by an old version of Alcove, which wrote no mark file. That version always made these paths
 * first, even on a host without control.
 */
const isOfOlderVersion = (path: string) =>
  isThere(join(path, 'run', 'up.lock')) &&
  ['secrets', 'postgres', 'runner', 'log'].every((name) => isDirectory(join(path, name)))

const isOurs = (path: string) => isThere(markOf(path)) || isOfOlderVersion(path)

/**
 * Returns the paths in a data directory, or undefined if `directory` is not Alcove's. Throws an error for the user if only root can
 * find out.
 */
export const findDataDirectory = (directory: string): DataDirectory | undefined =>
  isOurs(directory) ? dataDirectoryAt(directory) : undefined

/**
 * Makes a directory and its missing parents. Node's option `recursive` would hide a read-only file system or a full quota behind
 * ENOENT.
 */
const makeWithParents = (path: string): void => {
  if (!existsSync(dirname(path))) makeWithParents(dirname(path))
  try {
    mkdirSync(path)
  } catch (error) {
    if (!(codeOf(error) === 'EEXIST' && isDirectory(path))) throw error
  }
}

const makeDirectory = (path: string, mode: number, owner?: { uid: number; gid: number }) => {
  makeWithParents(path)
  if (!owner) checkOwner(path)
  // mkdir reduces a mode by the umask, and an older directory may have a different mode. So set the mode explicitly.
  chmodSync(path, mode)
  if (owner) chownSync(path, owner.uid, owner.gid)
}

/**
 * Marks a directory as Alcove's. Throws an error for the operator if the directory is unmarked and not empty, or if another user
 * could replace it.
 */
const takeDirectory = (path: string) => {
  checkPlace(path)
  try {
    makeWithParents(path)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    throw new Complaint(`${path} is not a directory`, { cause: error })
  }
  // Check the owner again: in a directory like /tmp, a different user may have made `path` after the first check.
  checkPlace(path)
  if (!isOurs(path) && readdirSync(path).some((name) => !namesBefore.includes(name))) {
    throw new Complaint(
      `${path} is not empty, and is not a data directory of Alcove. Give a data directory of Alcove, or a new or empty directory. ` +
        `If ${path} is a data directory of Alcove after all, make an empty file ${markOf(path)}`,
    )
  }
  markAsOurs(path)
  chmodSync(path, 0o711)
}

/** Creates what the data directory lacks. Throws an error for the operator if Alcove must not use the directory. */
export const prepareDataDirectory = (directory: string): DataDirectory => {
  takeDirectory(resolve(directory))
  const data = dataDirectoryAt(directory)
  makeDirectory(data.secrets, 0o700)
  makeDirectory(data.log, 0o700)
  makeDirectory(join(data.path, 'run'), 0o755)
  makeDirectory(data.runner, 0o711)
  makeDirectory(data.postgres, 0o711)
  makeDirectory(data.runtime, 0o711)
  // Every user may connect to the socket of PostgreSQL. The database is protected by a password that only control has.
  makeDirectory(data.postgresSocket, 0o711, { uid: users.postgres, gid: users.postgres })
  makeDirectory(runnerSockets, 0o711)
  makeDirectory(allAgentSockets, 0o711)
  return data
}

/** Reads a secret, or creates it. Two processes that call this at the same time get the same secret. */
export const readSecret = (
  data: Pick<DataDirectory, 'secrets'>,
  name: string,
  make: () => string,
): { value: string; isNew: boolean } => {
  const path = join(data.secrets, name)
  const draft = `${path}.${process.pid}`
  let isNew = false
  if (!existsSync(path)) {
    writeFileSync(draft, `${make()}\n`, { mode: 0o600, flush: true })
    try {
      linkSync(draft, path)
      isNew = true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      unlinkSync(draft)
    }
    // The secret must be on the disk before its use. A power failure must not lose a key that data on another machine needs.
    for (const directory of [data.secrets, dirname(data.secrets)]) syncPathNow(directory)
  }
  return { value: readFileSync(path, 'utf8').trim(), isNew }
}

export const newServiceKey = () => randomBytes(32).toString('hex')
/** Makes an encryption key of 32 bytes, as base64. Whoever loses this key loses all secrets that control has encrypted. */
export const newEncryptionKey = () => randomBytes(32).toString('base64')

/**
 * Reads earlier encryption keys, with which older data can still be read. To replace the current key, an operator moves it from the
 * file `encryption.key` to a line of the file `encryption.older.keys` and restarts the server.
 */
export const readOlderEncryptionKeys = (data: DataDirectory): string => {
  const path = join(data.secrets, 'encryption.older.keys')
  return existsSync(path) ? readFileSync(path, 'utf8').split(/\s+/).filter(Boolean).join(',') : ''
}

/** Makes a new API key. */
export const newApiKey = () => `dtn_${randomBytes(32).toString('hex')}`

/**
 * Finds the server's admin key for the commands of this machine. Undefined before the first `up`. Throws an error for the user if
 * only root may read the key.
 */
export const findAdminKey = (data: DataDirectory): string | undefined => {
  try {
    return readFileSync(join(data.secrets, 'admin.key'), 'utf8').trim()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    if (codeOf(error) === 'EACCES') throw new Complaint('only root may read the key; use sudo', { cause: error })
    throw error
  }
}
