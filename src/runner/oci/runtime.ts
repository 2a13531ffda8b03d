// Runs the OCI runtime (crun) by its standard command line. No other file depends on which runtime is used.
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathOfProgram, runCommand } from '#src/kit/run-command.ts'
import { LaunchFailed, runSteps, type Step, step } from '../launch.ts'

export type Runtime = {
  readonly name: string
  readonly version: string
  /**
   * Returns the launcher's steps that start the sandbox described in `bundle`. These steps must be the last steps of a launch, in a
   * mount namespace of its own. The agent's socket becomes descriptor 3. The runtime writes errors to a log in the bundle.
   */
  stepsToRun(sandboxId: string, bundle: string): Step[]
  /** Returns the runtime's error message after a failed start, as text for users. Undefined if there is no message. */
  complaint(bundle: string): Promise<string | undefined>
  /** Removes what the runtime has stored about a sandbox whose processes have ended. No error if nothing is stored. */
  forget(sandboxId: string): Promise<void>
}

export type RuntimeParts = {
  launcher: string
  /** Directory in which the runtime stores a directory for each sandbox that it has started (`--root`). */
  root: string
  /** Mounts of the host that the runtime must not see. */
  hiddenMounts: readonly string[]
  /** A file on which the runtime's program is mounted, in the mount namespace of each launch. */
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
  // A container must not be able to write to crun's program. Without this read-only mount, crun would make such a mount itself and
  // start a second time, which is slow.
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
        // crun's files about the sandbox may be incomplete. The sandbox's processes have ended, so removing these files is enough.
        if (!(error instanceof LaunchFailed)) throw error
      }
      await rm(state, { recursive: true, force: true })
    },
  }
}
