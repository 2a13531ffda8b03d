// The OCI runtime through its standard command line. Nothing outside this file knows which one it is.
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { runCommand } from '#src/kit/run-command.ts'
import { LaunchFailed, runSteps, type Step, step } from '../launch.ts'

export type Runtime = {
  readonly name: string
  readonly version: string
  /** What starts the sandbox of a bundle, with the agent's socket as descriptor 3. Errors go to the bundle's log. */
  runArguments(sandboxId: string, bundle: string): string[]
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
}

const logName = 'runtime.log'
const complaintLimit = 500

export const hideMounts = (paths: readonly string[]): Step[] => [
  step.privateMounts(),
  ...paths.map((path) => step.hide(path)),
]

export const openCrun = async ({ launcher, root, hiddenMounts }: RuntimeParts): Promise<Runtime> => {
  const said = await runCommand(['crun', '--version'])
  const version = /crun version (\S+)/.exec(said)?.[1] ?? 'unknown'
  const base = ['crun', '--root', root, '--cgroup-manager', 'cgroupfs']

  return {
    name: 'crun',
    version,

    runArguments: (sandboxId, bundle) => [
      ...base,
      '--log',
      join(bundle, logName),
      'run',
      '--detach',
      '--preserve-fds=1',
      '--bundle',
      bundle,
      sandboxId,
    ],

    complaint: async (bundle) => {
      const text = await readFile(join(bundle, logName), 'utf8').catch(() => '')
      const line = text.trim().split('\n').at(-1) ?? ''
      return line.replace(/^\S+Z: /, '').slice(0, complaintLimit) || undefined
    },

    forget: async (sandboxId) => {
      const state = join(root, sandboxId)
      if (!existsSync(state)) return
      try {
        await runSteps(launcher, [...hideMounts(hiddenMounts), step.exec([...base, 'delete', '--force', sandboxId])])
      } catch (error) {
        // Its state may be half written; the processes have ended, so what is left is this directory.
        if (!(error instanceof LaunchFailed)) throw error
      }
      await rm(state, { recursive: true, force: true })
    },
  }
}
