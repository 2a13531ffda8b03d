// Ranges of uids and gids of the host that are only for sandboxes. No other program of the host may use them.

/**
 * Uids and gids that own the files of sandboxes. The first one is uid 0 inside a sandbox. `up` reserves the range in
 * /etc/subuid, so that no other program allocates it.
 */
export const diskIds = { first: 165536, count: 65536 } as const

/**
 * Uids and gids of the processes of sandboxes, 65536 for each. They begin above what useradd (600100000) and LXD (1001000000)
 * allocate. They end below 2^31, because some programs of the host read ids as signed numbers.
 */
const firstRange = diskIds.first + 15_273 * diskIds.count
export const runningIds = { first: firstRange, ranges: Math.floor((2 ** 31 - firstRange) / diskIds.count) } as const

/**
 * Each running sandbox has a second range of host ids, for processes whose uid in the sandbox is above 65535. The second ranges are
 * in the upper half of all ids, because no convention for users or containers uses this half. They end below the special ids -1 and
 * -2. If an older version of Alcove has started a sandbox, the sandbox may have only its first range (`runningIds`).
 *
 * These ids cost memory of the kernel: 330 bytes for each uid with a process. No cgroup counts these bytes. If every uid of both
 * ranges has a process, a sandbox costs about 64 MiB.
 */
const moreIds = 2 ** 17 + 2 ** 13
export const moreRunningIds = { first: 2 ** 31, count: moreIds, ranges: Math.floor((2 ** 31 - 2) / moreIds) } as const
