// The OCI runtime through its standard command line. Nothing outside this file knows which one it is.
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathOfProgram, runCommand } from '#src/kit/run-command.ts'
import { LaunchFailed, runSteps, type Step, step } from '../launch.ts'

export type Runtime = {
  readonly name: string
  readonly version: string
  /**
   * Start the sandbox of a bundle, with the agent's socket as descriptor 3; the last steps of a launch in private mounts.
   * Errors go to the bundle's log.
   */
  stepsToRun(sandboxId: string, bundle: string): Step[]
  /** What the runtime said when a start failed, for a person; undefined if it said nothing. */
  complaint(bundle: string): Promise<string | undefined>
  /** Removes what the runtime remembers of a sandbox whose processes have ended. Fine when there is nothing. */
  forget(sandboxId: string): Promise<void>
}

export type RuntimeParts = {
  launcher: string
  /** Where the runtime keeps its state, `--root`. */
  root: string
  /** Mounts that the runtime must not see. */
  hiddenMounts: readonly string[]
  /** A file; where the runtime's program is mounted, each time in private mounts. */
  mountPoint: string
}

const logName = 'runtime.log'
const complaintLimit = 500

export const hideMounts = (paths: readonly string[]): Step[] => [
  step.privateMounts(),
  ...paths.map((path) => step.hide(path)),
]

export const openCrun = async ({ launcher, root, hiddenMounts, mountPoint }: RuntimeParts): Promise<Runtime> => {
  const said = await runCommand(['crun', '--version'])
  const version = /crun version (\S+)/.exec(said)?.[1] ?? 'unknown'
  const program = await pathOfProgram('crun')
  // A container must never write to the program that starts it. crun makes itself such a place and begins anew there,
  // unless it finds that it is in one: that is a second start of a program, and an unmount, which waits for all processors.
  const exec = (...args: string[]) => [
    step.bind(program, mountPoint),
    step.readOnly(mountPoint),
    step.exec([mountPoint, '--root', root, '--cgroup-manager', 'cgroupfs', ...args]),
  ]

  return {
    name: 'crun',
    version,

    stepsToRun: (sandboxId, bundle) =>
      exec('--log', join(bundle, logName), 'run', '--detach', '--preserve-fds=1', '--bundle', bundle, sandboxId),

    complaint: async (bundle) => {
      const text = await readFile(join(bundle, logName), 'utf8').catch(() => '')
      const line = text.trim().split('\n').at(-1) ?? ''
      return line.replace(/^\S+Z: /, '').slice(0, complaintLimit) || undefined
    },

    forget: async (sandboxId) => {
      const state = join(root, sandboxId)
      if (!existsSync(state)) return
      try {
        await runSteps(launcher, [...hideMounts(hiddenMounts), ...exec('delete', '--force', sandboxId)])
      } catch (error) {
        // The state of the runtime may be half written; the processes have ended, so only this directory is left.
        if (!(error instanceof LaunchFailed)) throw error
      }
      await rm(state, { recursive: true, force: true })
    },
  }
}
