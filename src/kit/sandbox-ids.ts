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
 * A second range for each running sandbox: for its processes whose uid in the sandbox is above 65535. These ranges are in the upper
 * half of all ids, which no convention for users or containers uses. They end below the special ids -1 and -2. A sandbox that an
 * older version of Alcove has started may have only the first range.
 *
 * The kernel needs 330 bytes for each uid with a process. No cgroup counts these bytes. If every uid of both ranges of a sandbox
 * has a process, the kernel needs about 64 MiB.
 */
const moreIds = 2 ** 17 + 2 ** 13
export const moreRunningIds = { first: 2 ** 31, count: moreIds, ranges: Math.floor((2 ** 31 - 2) / moreIds) } as const
