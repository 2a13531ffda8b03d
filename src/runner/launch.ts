// The steps that `native/launch.c` can carry out, as typed functions. One launcher process runs all steps of a start.
import { CommandFailed, expectMove, haveCommandsStartedBy, runByServer, runCommand } from '#src/kit/run-command.ts'

export type Step = readonly [name: string, ...args: string[]]

export const step = {
  /** The launcher dies with this process, so that no half-done start continues without a runner. */
  childOfMe: (): Step => ['child-of', String(process.pid)],
  subvolume: (path: string): Step => ['subvolume', path],
  limit: (path: string, bytes: number): Step => ['limit', path, String(bytes)],
  deleteSubvolume: (path: string): Step => ['delete-subvolume', path],
  /** Copies a subvolume as it is now. Fails if the name `to` is taken. */
  snapshot: (from: string, to: string): Step => ['snapshot', from, to],
  /** Removes a tree that no other process can reach. */
  removeTree: (path: string): Step => ['remove-tree', path],
  /** Removes a file below a directory that a sandbox filled, without following its links. */
  forgetFile: (directory: string, path: string): Step => ['forget-file', directory, path],
  /**
   * Removes devices, setuid bits and capabilities that the sandbox with these ids could not have made itself. Use it only for
   * trees that no process can reach.
   */
  disarm: (path: string, firstId: number, count: number): Step => ['disarm', path, String(firstId), String(count)],
  rename: (from: string, to: string): Step => ['rename', from, to],
  /** Writes a file's contents, or a directory's names, to the disk (fsync). */
  sync: (path: string): Step => ['sync', path],
  /** Creates a directory if it is absent. Sets owner and mode in any case. */
  directory: (path: string, owner: number, mode: number): Step => ['directory', path, String(owner), mode.toString(8)],
  /** Writes a file with this text, owner and mode 0644, and replaces whatever was there. */
  file: (path: string, owner: number, text: string): Step => ['file', path, String(owner), text],
  /** Writes a file only if it is absent or empty. */
  newFile: (path: string, owner: number, text: string): Step => ['new-file', path, String(owner), text],
  /** Listens on a unix socket to which root and this group may connect. */
  listen: (path: string, gid: number): Step => ['listen', path, String(gid)],
  privateMounts: (): Step => ['private'],
  /** Mounts the /sys of a network namespace. */
  sysfs: (netnsPath: string, path: string): Step => ['sysfs', netnsPath, path],
  /** Puts all programs that later steps start into a new time namespace. */
  ownTime: (): Step => ['own-time'],
  hide: (path: string): Step => ['hide', path],
  overlay: (options: string, path: string): Step => ['overlay', options, path],
  bind: (from: string, to: string): Step => ['bind', from, to],
  /** Sets the owner map for later `bindMapped` steps, from owner on the disk to owner inside; format: user_namespaces(7). */
  ids: (map: string): Step => ['ids', map],
  bindMapped: (from: string, to: string): Step => ['bind-mapped', from, to],
  /**
   * Mounts a volume, or the directory `subpath` of it, which is made if it is missing. New directories belong to `owner`. Owners are
   * mapped as in `bindMapped` if `ids` came before.
   */
  volume: (from: string, subpath: string, owner: number, to: string): Step => [
    'volume',
    from,
    subpath,
    String(owner),
    to,
  ],
  /** Fails if `path` below `root` is a file or a link, or lies behind a link. A path that does not exist is fine. */
  mountPoint: (root: string, path: string): Step => ['mount-point', root, path],
  /**
   * Sets the size of the /dev/shm of the sandbox with this first process. Must be the last step: later steps would act in its
   * mount namespace.
   */
  sharedMemory: (pid: number, bytes: number): Step => ['shm', String(pid), String(bytes)],
  readOnly: (path: string): Step => ['read-only', path],
  /** Becomes another program. Must be the last step. */
  exec: (argv: readonly string[]): Step => ['exec', ...argv],
}

/** A step failed. The message is the launcher's one line, such as `overlay: No such file or directory (…)`. */
export class LaunchFailed extends Error {
  override readonly name = 'LaunchFailed'
}

const timeoutMs = 60_000

/**
 * Starts the launcher as a server that starts all commands of this process. `ownCgroup`: path of the file that moves a process
 * into this process's cgroup. The server writes there ahead of a start, because the first such move is slow.
 */
export const serveCommands = (launcher: string, ownCgroup: string | undefined): Disposable =>
  haveCommandsStartedBy([launcher, 'serve', ...(ownCgroup === undefined ? [] : [ownCgroup])])

/** Announces a start, so that slow preparation runs in parallel with the work before the start. */
export const expectStart = (): void => expectMove()

export const runSteps = async (launcher: string, steps: readonly Step[]): Promise<void> => {
  const argv = steps.flat()
  const movesProcess = steps.some(([name]) => name === 'exec')
  try {
    const isDone = await runByServer({ argv, are: 'steps', movesProcess, timeoutMs })
    if (isDone === undefined) await runCommand([launcher, ...step.childOfMe(), ...argv], { timeoutMs })
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error
    throw new LaunchFailed(error.stderr.trim().slice(0, 500) || `exit code ${error.exitCode}`, { cause: error })
  }
}
