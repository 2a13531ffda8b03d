// Ranges of uids and gids on the host that belong to sandboxes. No other program may allocate them.

/** Owners of files on disks and in images. The first is uid 0 of a sandbox. `up` reserves the range in /etc/subuid. */
export const diskIds = { first: 165536, count: 65536 } as const

/**
 * Users of running sandboxes, in ranges of 65536. They begin above the ids that useradd (to 600100000) and LXD (to 1001000000)
 * allocate, and end below 2^31, because some programs of the host read ids as signed.
 */
const firstRange = diskIds.first + 15_273 * diskIds.count
export const runningIds = { first: firstRange, ranges: Math.floor((2 ** 31 - firstRange) / diskIds.count) } as const

/**
 * Users above 65535 of running sandboxes. They are the upper half of all ids: no convention for users or containers reaches there, and
 * what no sandbox had before an upgrade overlaps with none that runs on. -1 and -2 are in no range.
 *
 * The kernel keeps 330 bytes for each user, which count as nobody's memory. A sandbox has 204,800 users, so at most 64 MiB of that.
 */
const moreIds = 2 ** 17 + 2 ** 13
export const moreRunningIds = { first: 2 ** 31, count: moreIds, ranges: Math.floor((2 ** 31 - 2) / moreIds) } as const
