// Makes idmapped mounts. Such a mount shows files as owned by the host user ids of one sandbox (oci/ids.ts).
import type { Logger } from '#src/kit/log.ts'
import { LaunchFailed, runSteps, type Step, step } from '../launch.ts'
import { groupLargeIds, type IdRange, mapToOwn, ownIds, sharedIds } from '../oci/ids.ts'

/**
 * Returns steps that mount each directory `from` at `to`. At `to`, the files belong to the host ids in `ids`. Exception: with
 * `sharedIds`, the files keep the owners that they have on the disk.
 */
export const stepsToShow = (
  ids: readonly IdRange[],
  mounts: readonly (readonly [from: string, to: string])[],
): Step[] => {
  if (ids === sharedIds) return mounts.map(([from, to]) => step.bind(from, to))
  return [step.ids(mapToOwn(ids)), ...mounts.map(([from, to]) => step.bindMapped(from, to))]
}

/**
 * The highest host ids of a sandbox whose image needs two user ids above the usual id map (oci/ids.ts). The function
 * `canShowOwners` tests the kernel with these host ids.
 */
const highestIds = ownIds('10.255.255.255', groupLargeIds([1_000_000, 4_000_000_000]))

/** Returns whether the kernel can make an idmapped mount of `directory`. */
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
  /** Directories for trial mounts: one on each file system with images or disks. */
  directories: readonly string[]
  mountPoints: { image: string; own: string }
}

/**
 * Returns whether idmapped mounts of `directories` can be layers of an overlay. Such layers need Linux 5.19 and a file system that
 * supports idmapped mounts.
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
