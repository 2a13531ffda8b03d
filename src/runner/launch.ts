// The steps that `native/launch.c` can carry out, typed, and running them: one process for a whole start.
import { CommandFailed, expectMove, haveCommandsStartedBy, runByServer, runCommand } from '#src/kit/run-command.ts'

export type Step = readonly [name: string, ...args: string[]]

export const step = {
  /** Dies with this process, so that nothing half done goes on after it. */
  childOfMe: (): Step => ['child-of', String(process.pid)],
  subvolume: (path: string): Step => ['subvolume', path],
  limit: (path: string, bytes: number): Step => ['limit', path, String(bytes)],
  deleteSubvolume: (path: string): Step => ['delete-subvolume', path],
  /** A subvolume with what another one holds now; fails if the name is taken. */
  snapshot: (from: string, to: string): Step => ['snapshot', from, to],
  /** Removes a tree that nobody else can reach. */
  removeTree: (path: string): Step => ['remove-tree', path],
  /** Below a directory that a sandbox filled, through no link of it. */
  forgetFile: (directory: string, path: string): Step => ['forget-file', directory, path],
  /** Takes away what no sandbox with these ids could have made. Only for what nobody else can reach. */
  disarm: (path: string, firstId: number, count: number): Step => ['disarm', path, String(firstId), String(count)],
  rename: (from: string, to: string): Step => ['rename', from, to],
  /** What a file holds, or the names in a directory, is on the disk from here on. */
  sync: (path: string): Step => ['sync', path],
  /** Made if absent, and given its owner and mode either way. */
  directory: (path: string, owner: number, mode: number): Step => ['directory', path, String(owner), mode.toString(8)],
  /** With this text, owner and mode 0644 afterwards, whatever was there. */
  file: (path: string, owner: number, text: string): Step => ['file', path, String(owner), text],
  /** Only if it is absent or empty. */
  newFile: (path: string, owner: number, text: string): Step => ['new-file', path, String(owner), text],
  /** Root and this group may connect. */
  listen: (path: string, gid: number): Step => ['listen', path, String(gid)],
  privateMounts: (): Step => ['private'],
  /** The /sys of a network namespace. */
  sysfs: (netnsPath: string, path: string): Step => ['sysfs', netnsPath, path],
  /** A time namespace for what is started from here on. */
  ownTime: (): Step => ['own-time'],
  hide: (path: string): Step => ['hide', path],
  overlay: (options: string, path: string): Step => ['overlay', options, path],
  bind: (from: string, to: string): Step => ['bind', from, to],
  /** By what `bindMapped` maps owners from now on, on the disk to outside: lines as in user_namespaces(7). */
  ids: (map: string): Step => ['ids', map],
  bindMapped: (from: string, to: string): Step => ['bind-mapped', from, to],
  /** Sets the size of /dev/shm of the sandbox whose first process this is. Comes last: later steps would act in its mount namespace. */
  sharedMemory: (pid: number, bytes: number): Step => ['shm', String(pid), String(bytes)],
  readOnly: (path: string): Step => ['read-only', path],
  /** The last one. */
  exec: (argv: readonly string[]): Step => ['exec', ...argv],
}

/** A step failed; the message is its one line, such as `overlay: No such file or directory (…)`. */
export class LaunchFailed extends Error {
  override readonly name = 'LaunchFailed'
}

const timeoutMs = 60_000

/**
 * The launcher as the one who starts all commands of this process. `ownCgroup` is a file that moves who writes into it to
 * where it is; writing there in time spares a start the wait of the first such move.
 */
export const serveCommands = (launcher: string, ownCgroup: string | undefined): Disposable =>
  haveCommandsStartedBy([launcher, 'serve', ...(ownCgroup === undefined ? [] : [ownCgroup])])

/** A start is about to be asked for: what it would wait for passes beside what comes before it. */
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
