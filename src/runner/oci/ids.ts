// Who the users of a sandbox are on the host. On disks, and in images, they are of one range for all, so that those are shifted
// once and copied as they are. While a sandbox runs they are of a range of its own, and what is mounted for it maps the one to
// the other. Ids are users and groups alike.

import { diskIds, runningIds } from '#src/kit/sandbox-ids.ts'

/** uid 0 inside is this one on disks. */
export const uidBase = diskIds.first
export const uidCount = diskIds.count

/** The first id of the highest range. */
export const lastBase = runningIds.first + (runningIds.ranges - 1) * uidCount

/**
 * The first id of the range of the sandbox with this address, `10.x.y.z`. Two that run at the same time have different ones, for
 * as many as one runner has addresses for; the ranges of several runners on one host may be the same by chance.
 */
export const ownBase = (address: string): number => {
  const [, , high = 0, low = 0] = address.split('.').map(Number)
  return runningIds.first + ((high * 256 + low) % runningIds.ranges) * uidCount
}

/** From ids on disks to those of a range, in lines of uid_map (user_namespaces(7)). What is root's own stays so. */
export const mapToOwn = (base: number): string => `0 0 1\n${uidBase} ${base} ${uidCount}\n`
