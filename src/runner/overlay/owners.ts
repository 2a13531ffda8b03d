// Maps the owners of files in a sandbox's mounts to the sandbox's own user ids on the host. oci/ids.ts explains the ids.
import type { Logger } from '#src/kit/log.ts'
import { LaunchFailed, runSteps, type Step, step } from '../launch.ts'
import { groupLargeIds, type IdRange, mapToOwn, ownIds, sharedIds } from '../oci/ids.ts'

/**
 * Returns steps that mount directories so that their files appear with owners from `ids`. With `sharedIds` (one range for all
 * sandboxes), files keep their owners.
 */
export const stepsToShow = (
  ids: readonly IdRange[],
  mounts: readonly (readonly [from: string, to: string])[],
): Step[] => {
  if (ids === sharedIds) return mounts.map(([from, to]) => step.bind(from, to))
  return [step.ids(mapToOwn(ids)), ...mounts.map(([from, to]) => step.bindMapped(from, to))]
}

/** Ids for testing the kernel: the highest range that a sandbox may have, and more ranges than most sandboxes have. */
const highestIds = ownIds('10.255.255.255', groupLargeIds([1_000_000, 4_000_000_000]))

/**
 * Tests whether owners can be mapped in a directory that is mounted without an overlay. Returns false if the kernel refuses
 * that.
 */
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
  /** Directories in which the mapping is tested: one on each file system with files whose owners have to be mapped. */
  directories: readonly string[]
  mountPoints: { image: string; own: string }
}

/**
 * Tests whether owners of files in `directories` can be mapped below an overlay. That needs Linux 5.19, and a file system that
 * supports mapped mounts.
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
