// Ranges of uids and gids on the host that belong to sandboxes. No other program may allocate them.

/**
 * Uids and gids that own files on disks and in images. The first id is uid 0 of a sandbox. `up` reserves the range in
 * /etc/subuid.
 */
export const diskIds = { first: 165536, count: 65536 } as const

/**
 * Users of running sandboxes, in ranges of 65536. They begin above the ids that useradd (to 600100000) and LXD (to 1001000000)
 * allocate, and end below 2^31, because some programs of the host read ids as signed.
 */
const firstRange = diskIds.first + 15_273 * diskIds.count
export const runningIds = { first: firstRange, ranges: Math.floor((2 ** 31 - firstRange) / diskIds.count) } as const

/**
 * Users of running sandboxes whose uid in the sandbox is above 65535. They are the upper half of all ids, which no
 * convention for users or containers uses. Running sandboxes from before an upgrade have no ids there. -1 and -2 are in
 * no range.
 *
 * The kernel keeps 330 bytes for each user, which are counted for no sandbox. A sandbox has 204,800 users, so at most
 * 64 MiB.
 */
const moreIds = 2 ** 17 + 2 ** 13
export const moreRunningIds = { first: 2 ** 31, count: moreIds, ranges: Math.floor((2 ** 31 - 2) / moreIds) } as const
