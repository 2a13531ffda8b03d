// Finds and removes what an ended server has left outside of its data directory. The server's instance name identifies these
// things. The kernel says what exists, because files of the server may be wrong.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isAlive, type ProcessIdentity, signalProcess } from '#src/kit/process-identity.ts'
import { removeTree } from '#src/kit/remove-tree.ts'
import { type DataDirectory, markAsOurs, markOf, ownNames } from './data-directory.ts'
import { fileHolders, type Holder, mountHolders, sayHolders } from './holders.ts'
import { findUpState } from './state-file.ts'

type Kind = {
  what: string
  list: (data: DataDirectory) => string[]
  remove: (data: DataDirectory, name: string) => void
  /** Finds the processes that prevent the removal of a loop device. Only the kind `loop device` has this function. */
  holders?: (name: string) => Holder[]
}

const cgroupRoot = '/sys/fs/cgroup'

const run = (command: string, ...args: string[]) => {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  return { succeeded: status === 0, lines: (stdout ?? '').split('\n').filter(Boolean) }
}

const directoriesIn = (path: string): string[] => {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(path, entry.name))
  } catch {
    return []
  }
}

/** Lists a cgroup and all cgroups in it, children first, because only a cgroup without children can be removed. */
export const cgroupTree = (path: string): string[] => [...directoriesIn(path).flatMap(cgroupTree), path]

/**
 * Lists the cgroups of a server. cgroup v1 has a hierarchy for each controller, cgroup v2 has a single hierarchy, and some hosts
 * use both versions.
 */
export const instanceCgroups = ({ instance }: DataDirectory): string[] =>
  [cgroupRoot, ...directoriesIn(cgroupRoot)]
    .map((hierarchy) => join(hierarchy, `alcove-${instance}`))
    .filter((path) => existsSync(path))

export const pidsIn = (cgroup: string): string[] => {
  try {
    return readFileSync(join(cgroup, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}

const sandboxPids = (data: DataDirectory): string[] => [
  ...new Set(instanceCgroups(data).flatMap(cgroupTree).flatMap(pidsIn)),
]

const cgroupsOf = (data: DataDirectory, pid: string): string[] =>
  instanceCgroups(data)
    .flatMap(cgroupTree)
    .filter((path) => pidsIn(path).includes(pid))

const programs = (data: DataDirectory): ProcessIdentity[] =>
  (findUpState(data.stateFile)?.programs ?? []).filter((program) => isAlive(program))

/** Unfreezes a cgroup, because cgroup v1 does not kill a frozen process. */
export const thaw = (cgroup: string): void => {
  const files = [
    ['freezer.state', 'THAWED'],
    ['cgroup.freeze', '0'],
  ] as const
  for (const [name, word] of files) {
    try {
      if (existsSync(join(cgroup, name))) writeFileSync(join(cgroup, name), word)
    } catch {
      // Writing has failed: the cgroup is removed already, or it is a root cgroup, which cannot be frozen.
    }
  }
}

const kill = (pid: string) => {
  try {
    process.kill(Number(pid), 'SIGKILL')
  } catch {
    // The process has already ended, so there is nothing to kill.
  }
}

// Decodes a path of mountinfo, where spaces and some other characters are written as octal numbers.
const unescaped = (text: string) =>
  text.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))

const isBelow = (path: string, parent: string) => path === parent || path.startsWith(`${parent}/`)

export const mounts = ({ path, runtime }: DataDirectory): string[] =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => unescaped(line.split(' ')[4] ?? ''))
    .filter((target) => target !== path && (isBelow(target, path) || isBelow(target, runtime)))
    .reverse()

const loopDevices = ({ path }: DataDirectory): string[] =>
  readdirSync('/sys/block')
    .filter((name) => {
      const file = `/sys/block/${name}/loop/backing_file`
      return (
        existsSync(file) &&
        isBelow(
          readFileSync(file, 'utf8')
            .trim()
            .replace(/ \(deleted\)$/, ''),
          path,
        )
      )
    })
    .map((name) => `/dev/${name}`)

const links = ({ instance }: DataDirectory): string[] =>
  readdirSync('/sys/class/net').filter((name) => name === `alc${instance}` || name.startsWith(`al${instance}`))

const networkNamespaces = ({ instance }: DataDirectory): string[] =>
  existsSync('/run/netns') ? readdirSync('/run/netns').filter((name) => name.startsWith(`alcove-${instance}-`)) : []

const firewallTables = ({ instance }: DataDirectory): string[] =>
  run('nft', 'list', 'tables')
    .lines.filter((line) => line.endsWith(` alcove_${instance}`))
    .map((line) => line.replace(/^table /, ''))

const removeCgroup = (path: string) => {
  for (const below of cgroupTree(path)) {
    try {
      rmdirSync(below)
    } catch {
      // A cgroup stays busy for some milliseconds after its last process has ended. The caller of this function tries again.
    }
  }
}

const runtimeDirectory: Kind = {
  what: 'runtime directory',
  list: ({ runtime }) => (existsSync(runtime) ? [runtime] : []),
  // If something is mounted below the runtime directory, nothing is removed: the mounted data may belong to another
  // program.
  remove: (data, path) => {
    if (mounts(data).length === 0) rmSync(path, { recursive: true, force: true })
  },
}

const runnerSocket: Kind = {
  what: 'socket of the runner',
  list: (data) => (existsSync(data.runnerSocket) ? [data.runnerSocket] : []),
  remove: (_, path) => rmSync(path, { force: true }),
}

const agentSockets: Kind = {
  what: 'directory of the agents’ sockets',
  list: (data) => (existsSync(data.agentSockets) ? [data.agentSockets] : []),
  remove: (_, path) => rmSync(path, { recursive: true, force: true }),
}

/**
 * Processes that had open files in a file system when it was unmounted lazily. The file system stays busy until these processes
 * end.
 */
const openFiles: Holder[] = []

const unmount = (path: string) => {
  if (run('umount', path).succeeded) return
  openFiles.push(...fileHolders(path))
  run('umount', '-l', path)
}

const isThere = ({ pid }: Holder) => existsSync(`/proc/${pid}`)

const deviceHolders = (device: string): Holder[] => {
  const all = [...mountHolders(device), ...openFiles.filter(isThere)]
  return [...new Map(all.map((holder) => [holder.pid, holder])).values()]
}

/** All kinds of things that a server may leave, in the order in which they are removed. */
const kinds: readonly Kind[] = [
  {
    what: 'program',
    list: (data) => programs(data).map(({ pid }) => String(pid)),
    remove: (data, pid) => {
      for (const program of programs(data)) if (String(program.pid) === pid) signalProcess(program, 'SIGKILL')
    },
  },
  {
    what: 'process in a sandbox',
    list: sandboxPids,
    remove: (data, pid) => {
      kill(pid)
      for (const cgroup of cgroupsOf(data, pid)) thaw(cgroup)
    },
  },
  { what: 'cgroup', list: instanceCgroups, remove: (_, path) => removeCgroup(path) },
  { what: 'network namespace', list: networkNamespaces, remove: (_, name) => void run('ip', 'netns', 'delete', name) },
  { what: 'network link', list: links, remove: (_, name) => void run('ip', 'link', 'delete', name) },
  {
    what: 'nft table',
    list: firewallTables,
    remove: (_, name) => void run('nft', 'delete', 'table', ...name.split(' ')),
  },
  {
    what: 'mount',
    list: mounts,
    remove: (_, path) => unmount(path),
  },
  {
    what: 'loop device',
    list: loopDevices,
    remove: (_, device) => void run('losetup', '-d', device),
    holders: deviceHolders,
  },
  runnerSocket,
  agentSockets,
  runtimeDirectory,
]

/** Runs a step. If it throws, returns the message of the error, so that the later steps still run. */
const attempt = (step: () => void): string | undefined => {
  try {
    step()
  } catch (error) {
    return (error as Error).message
  }
}

/** Returns a line for each item (process, mount, file, …) that the server has left and that was not removed. */
const linesOf = (some: readonly Kind[], data: DataDirectory, failures: ReadonlyMap<string, string>): string[] =>
  some.flatMap(({ what, list, holders }) =>
    list(data).map((name) => {
      const why = failures.get(`${what} ${name}`)
      const held = holders === undefined ? '' : `, ${sayHolders(holders(name))}`
      return `${what} ${name}${held}${why === undefined ? '' : `: ${why}`}`
    }),
  )

/** True if only loop devices that processes outside of the server keep busy are left. A longer wait would then be useless. */
const isOnlyHeld = (some: readonly Kind[], data: DataDirectory): boolean =>
  some.every(({ list, holders }) => list(data).every((name) => holders !== undefined && holders(name).length > 0))

/**
 * Removes everything that a stopped server has left. Returns a line for each thing that remains after `timeoutMs`. A loop device
 * remains while it is mounted in another mount namespace, for example during the unpacking of an image.
 */
export const removeTraces = async (
  data: DataDirectory,
  { timeoutMs = 30_000, keepsRuntime = false }: { timeoutMs?: number; keepsRuntime?: boolean } = {},
): Promise<string[]> => {
  const wanted = keepsRuntime ? kinds.filter((kind) => kind !== runtimeDirectory) : kinds
  const begun = Date.now()
  for (;;) {
    const failures = new Map<string, string>()
    for (const { what, list, remove } of wanted)
      for (const name of list(data)) {
        const failure = attempt(() => remove(data, name))
        if (failure !== undefined) failures.set(`${what} ${name}`, failure)
      }
    if (wanted.every(({ list }) => list(data).length === 0)) return []
    const passed = Date.now() - begun
    if (passed > timeoutMs || (passed > heldForMs && isOnlyHeld(wanted, data))) return linesOf(wanted, data, failures)
    await pause(50)
  }
}

const heldForMs = 3000

/** Names of directories with credentials or data of users. These directories are removed first, because a later step may fail. */
const secretNames = ['secrets', 'host', 'postgres', 'log'] as const

/**
 * Removes directories with credentials or data of users. Returns a line for each directory that remains. `alcove purge` calls this
 * function early, because later steps may fail.
 */
export const removeSecrets = (data: DataDirectory): Promise<string[]> => removeNames(data, secretNames)

/**
 * Removes the named files and directories from the data directory. A directory with a mount at or below it stays, because the
 * mounted data may belong to another program.
 */
const removeNames = async (data: DataDirectory, names: readonly string[]): Promise<string[]> => {
  const left: string[] = []
  for (const name of names) {
    const path = join(data.path, name)
    if (mounts(data).some((target) => isBelow(target, path))) left.push(`${path}, because something is mounted there`)
    // A process that is ending may still write to the directory, so let `removeTree` try several times.
    else
      await removeTree(path, { tries: 10 }).catch((error: Error) => {
        left.push(`${path}: ${error.message}`)
      })
  }
  return left
}

/**
 * Removes Alcove's files, and then the data directory itself if it is empty and no mount point. Returns a line for each thing that
 * remains. The mark file goes last, and only if nothing else remains, so that purge can be called again.
 */
export const removeData = async (data: DataDirectory, { keepsMark = false } = {}): Promise<string[]> => {
  ignoring(['ENOSPC', 'EDQUOT'], () => markAsOurs(data.path))
  const left = await removeNames(data, keepsMark ? ownNames.filter((name) => name !== 'run') : ownNames)
  if (left.length > 0 || keepsMark) return left
  rmSync(markOf(data.path), { force: true })
  ignoring(['ENOTEMPTY', 'EBUSY'], () => rmdirSync(data.path))
  return []
}

const ignoring = (codes: readonly string[], step: () => void): void => {
  try {
    step()
  } catch (error) {
    if (!codes.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
