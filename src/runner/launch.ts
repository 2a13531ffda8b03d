// The steps that the launcher (`native/launch.c`) can carry out, as functions with types. One launcher process runs all steps of
// a start.
import { CommandFailed, expectMove, haveCommandsStartedBy, runByServer, runCommand } from '#src/kit/run-command.ts'

export type Step = readonly [name: string, ...args: string[]]

export const step = {
  /** Makes the launcher end when this process ends. Otherwise a half-done start would continue without a runner. */
  childOfMe: (): Step => ['child-of', String(process.pid)],
  subvolume: (path: string): Step => ['subvolume', path],
  limit: (path: string, bytes: number): Step => ['limit', path, String(bytes)],
  deleteSubvolume: (path: string): Step => ['delete-subvolume', path],
  /** Copies a subvolume as it is now. Fails if something with the name `to` exists. */
  snapshot: (from: string, to: string): Step => ['snapshot', from, to],
  /** Removes a directory and everything below it. Use this step only if no other process can reach the directory. */
  removeTree: (path: string): Step => ['remove-tree', path],
  /** Removes a file below a directory that a sandbox may have filled. Follows no symbolic link in that directory. */
  forgetFile: (directory: string, path: string): Step => ['forget-file', directory, path],
  /**
   * Removes from a sandbox's directory what no process of the sandbox could have made:
   * - devices
   * - setuid and setgid bits of files that belong to no user of the sandbox
   * - file capabilities that work outside of the sandbox
   * - overlay attributes with values that Alcove's overlays do not set
   *
   * The sandbox's users are the `count` ids from `firstId` on. No other process may reach the directory meanwhile.
   */
  disarm: (path: string, firstId: number, count: number): Step => ['disarm', path, String(firstId), String(count)],
  rename: (from: string, to: string): Step => ['rename', from, to],
  /** Writes the contents of a file, or the names in a directory, to the storage device (fsync). */
  sync: (path: string): Step => ['sync', path],
  /** Creates a directory if it does not exist. Sets its owner and mode in any case. */
  directory: (path: string, owner: number, mode: number): Step => ['directory', path, String(owner), mode.toString(8)],
  /** Writes a file with this text and owner and with mode 0644. Overwrites an existing file. Fails at a symbolic link. */
  file: (path: string, owner: number, text: string): Step => ['file', path, String(owner), text],
  /** Writes a file if it does not exist or is empty. */
  newFile: (path: string, owner: number, text: string): Step => ['new-file', path, String(owner), text],
  /** Makes a unix socket and listens on it. Root and the group `gid` may connect. */
  listen: (path: string, gid: number): Step => ['listen', path, String(gid)],
  privateMounts: (): Step => ['private'],
  /** Mounts the /sys that belongs to a network namespace. */
  sysfs: (netnsPath: string, path: string): Step => ['sysfs', netnsPath, path],
  /** Makes a time namespace for all programs that the launcher starts in later steps. */
  ownTime: (): Step => ['own-time'],
  hide: (path: string): Step => ['hide', path],
  overlay: (options: string, path: string): Step => ['overlay', options, path],
  bind: (from: string, to: string): Step => ['bind', from, to],
  /**
   * Sets an id map (user_namespaces(7)). Mounts of later steps `bindMapped` and `volume` translate the owners of files by this map.
   */
  ids: (map: string): Step => ['ids', map],
  bindMapped: (from: string, to: string): Step => ['bind-mapped', from, to],
  /**
   * Mounts a volume, or its directory `subpath`. Missing directories are made and belong to `owner`. If a step `ids` has set an id
   * map, the mount translates the owners of files by this map.
   */
  volume: (from: string, subpath: string, owner: number, to: string): Step => [
    'volume',
    from,
    subpath,
    String(owner),
    to,
  ],
  /** Fails if `path` below `root` is a file or a symbolic link, or leads through a symbolic link. `path` need not exist. */
  mountPoint: (root: string, path: string): Step => ['mount-point', root, path],
  /**
   * Sets the size of a sandbox's /dev/shm. `pid`: the sandbox's first process. Must be the last step, because the launcher enters
   * the sandbox's mount namespace.
   */
  sharedMemory: (pid: number, bytes: number): Step => ['shm', String(pid), String(bytes)],
  readOnly: (path: string): Step => ['read-only', path],
  /** Replaces the launcher by the program `argv`. Must be the last step. */
  exec: (argv: readonly string[]): Step => ['exec', ...argv],
}

/** Thrown if a step fails. The message is one line of the launcher, such as `overlay: No such file or directory (…)`. */
export class LaunchFailed extends Error {
  override readonly name = 'LaunchFailed'
}

const timeoutMs = 60_000

/**
 * Starts one launcher process (native/serve.c), which starts every command of this process. `ownCgroup`: path of the runner's
 * cgroup.procs. Each start of a sandbox moves a process into the sandbox's cgroup. Such a move is fast only shortly after an
 * earlier move of any process. Around a start, a helper process therefore moves itself into its own cgroup repeatedly.
 */
export const serveCommands = (launcher: string, ownCgroup: string | undefined): Disposable =>
  haveCommandsStartedBy([launcher, 'serve', ...(ownCgroup === undefined ? [] : [ownCgroup])])

/** Announces that a sandbox will be started, so that the launcher prepares the start while this process does other work. */
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
