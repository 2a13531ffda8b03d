// Maps the owners of a sandbox's files in its mounts, as explained in oci/ids.ts.
import type { Logger } from '#src/kit/log.ts'
import { LaunchFailed, runSteps, type Step, step } from '../launch.ts'
import { groupLargeIds, type IdRange, mapToOwn, ownIds, sharedIds } from '../oci/ids.ts'

/**
 * Steps that mount directories so that their files belong to these ids. Where all sandboxes share one range, nothing is mapped.
 */
export const stepsToShow = (
  ids: readonly IdRange[],
  mounts: readonly (readonly [from: string, to: string])[],
): Step[] => {
  if (ids === sharedIds) return mounts.map(([from, to]) => step.bind(from, to))
  return [step.ids(mapToOwn(ids)), ...mounts.map(([from, to]) => step.bindMapped(from, to))]
}

/** The highest ids that a sandbox may have, and more of them than it usually has. */
const highestIds = ownIds('10.255.255.255', groupLargeIds([1_000_000, 4_000_000_000]))

/** Whether owners can be mapped in a directory that is mounted without an overlay. */
export const canShowOwners = async (launcher: string, directory: string, mountPoint: string): Promise<boolean> => {
  try {
    await runSteps(launcher, [step.privateMounts(), ...stepsToShow(highestIds, [[directory, mountPoint]])])
    return true
  } catch (error) {
    if (!(error instanceof LaunchFailed)) throw error
    return false
  }
}

type Trial = {
  launcher: string
  log: Logger
  /** Directories to try, one for each file system whose files must be mapped. */
  directories: readonly string[]
  mountPoints: { image: string; own: string }
}

/**
 * Whether owners of files in these directories can be mapped below an overlay. Needs Linux 5.19 and a file system that supports
 * it.
 */
export const canMapOwners = async ({ launcher, log, directories, mountPoints }: Trial): Promise<boolean> => {
  const { image, own } = mountPoints
  try {
    for (const directory of directories)
      await runSteps(launcher, [
        step.privateMounts(),
        ...stepsToShow(highestIds, [[directory, image]]),
        step.overlay(`lowerdir=${image}:${own}`, image),
      ])
    return true
  } catch (error) {
    if (!(error instanceof LaunchFailed)) throw error
    log.warn({ err: error, directories }, 'no ids of their own for sandboxes here: all share one range (docs/adr/0004)')
    return false
  }
}
