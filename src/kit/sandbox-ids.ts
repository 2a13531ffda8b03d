// Ranges of uids and gids on the host that belong to sandboxes. No other program may allocate them.

/** Owners of files on disks and in images. The first is uid 0 of a sandbox. `up` reserves the range in /etc/subuid. */
export const diskIds = { first: 165536, count: 65536 } as const

/**
 * Users of running sandboxes, in ranges of 65536. They begin above the ids that useradd (to 600100000) and LXD (to 1001000000)
 * allocate, and end below 2^31, because some programs of the host read ids as signed.
 */
const firstRange = diskIds.first + 15_273 * diskIds.count
export const runningIds = { first: firstRange, ranges: Math.floor((2 ** 31 - firstRange) / diskIds.count) } as const
