// Maps users of sandboxes to ids on the host. On disks and in images all sandboxes share one range, so that files are shifted
// once and then copied as they are. A running sandbox has a range of its own, and its mounts map one range to the other. Ids are
// users and groups alike.

import { diskIds, runningIds } from '#src/kit/sandbox-ids.ts'

/** The id on disks of uid 0 inside. */
export const uidBase = diskIds.first
export const uidCount = diskIds.count

/** The first id of the highest range. */
export const lastBase = runningIds.first + (runningIds.ranges - 1) * uidCount

/**
 * The first id of the sandbox with this address, `10.x.y.z`. Sandboxes that run at the same time have different ranges, up to the
 * number of addresses of one runner. Ranges of several runners on one host may coincide.
 */
export const ownBase = (address: string): number => {
  const [, , high = 0, low = 0] = address.split('.').map(Number)
  return runningIds.first + ((high * 256 + low) % runningIds.ranges) * uidCount
}

/** Maps ids on disks to those of a range, as lines of uid_map (user_namespaces(7)). Root's own files stay root's. */
export const mapToOwn = (base: number): string => `0 0 1\n${uidBase} ${base} ${uidCount}\n`
