// Maps the owners of a sandbox's files in its mounts, as explained in oci/ids.ts.
import type { Logger } from '#src/kit/log.ts'
import { LaunchFailed, runSteps, type Step, step } from '../launch.ts'
import { lastBase, mapToOwn, uidBase } from '../oci/ids.ts'

/** Mounts directories so that their files belong to a range of ids. For the range of disks they are mounted unchanged. */
export const stepsToShow = (base: number, mounts: readonly (readonly [from: string, to: string])[]): Step[] => {
  if (base === uidBase) return mounts.map(([from, to]) => step.bind(from, to))
  return [step.ids(mapToOwn(base)), ...mounts.map(([from, to]) => step.bindMapped(from, to))]
}

type Trial = {
  launcher: string
  log: Logger
  /** Directories, each of which stands for all files on its file system. */
  directories: readonly string[]
  mountPoints: { image: string; own: string }
}

/** Whether owners can be mapped below an overlay there. Needs Linux 5.19 and a file system that supports it. */
export const canMapOwners = async ({ launcher, log, directories, mountPoints }: Trial): Promise<boolean> => {
  const { image, own } = mountPoints
  try {
    for (const directory of directories)
      await runSteps(launcher, [
        step.privateMounts(),
        ...stepsToShow(lastBase, [[directory, image]]),
        step.overlay(`lowerdir=${image}:${own}`, image),
      ])
    return true
  } catch (error) {
    if (!(error instanceof LaunchFailed)) throw error
    log.warn({ err: error, directories }, 'no ids of their own for sandboxes here: all share one range (docs/adr/0004)')
    return false
  }
}
