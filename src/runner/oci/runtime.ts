// Uses the OCI runtime (crun) through its standard command line. No other file depends on which runtime is used.
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathOfProgram, runCommand } from '#src/kit/run-command.ts'
import { LaunchFailed, runSteps, type Step, step } from '../launch.ts'

export type Runtime = {
  readonly name: string
  readonly version: string
  /**
   * Steps that start the sandbox of a bundle, with the agent's socket as descriptor 3. They are the last steps of a launch, in
   * its private mount namespace. The runtime logs errors to the bundle's log.
   */
  stepsToRun(sandboxId: string, bundle: string): Step[]
  /** The runtime's error message for users when a start failed; undefined if there is none. */
  complaint(bundle: string): Promise<string | undefined>
  /** Removes the runtime's state of a sandbox whose processes have ended. No error if there is none. */
  forget(sandboxId: string): Promise<void>
}

export type RuntimeParts = {
  launcher: string
  /** Directory of the runtime's state, `--root`. */
  root: string
  /** Mounts that the runtime must not see. */
  hiddenMounts: readonly string[]
  /** A file over which the runtime's program is mounted, in private mount namespaces. */
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
  // A container must never be able to write to the program that starts it. Unless crun's program is on a read-only mount, crun
  // makes such a mount and starts itself again from there. That costs a second program start, and an unmount that waits for all
  // processors.
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
        // The runtime's state may be half written. The processes have ended, so removing its directory is enough.
        if (!(error instanceof LaunchFailed)) throw error
      }
      await rm(state, { recursive: true, force: true })
    },
  }
}
