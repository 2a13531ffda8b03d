// The ids of the host that belong to sandboxes. No other program that hands out ids may give them to somebody else.

/** Owners of what lies on disks and in images: uid 0 of a sandbox is the first. `up` reserves them in /etc/subuid. */
export const diskIds = { first: 165536, count: 65536 } as const

/**
 * Users of sandboxes that run, in ranges of 65536. They begin past what useradd (to 600100000) and LXD (to 1001000000) hand out, and
 * end below 2^31, as some programs of the host read ids as signed.
 */
const firstRange = diskIds.first + 15_273 * diskIds.count
export const runningIds = { first: firstRange, ranges: Math.floor((2 ** 31 - firstRange) / diskIds.count) } as const
