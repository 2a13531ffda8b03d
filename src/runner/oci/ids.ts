// The user ids of sandboxes on the host. On disks and in images, the owner of each file is the id in the sandbox plus a constant
// (`uidBase`), so one sandbox's disk can be copied for another without changes. A running sandbox has host ids of its own, and its
// idmapped mounts replace the ids on the disk by these host ids. Group ids are treated like user ids.

import { diskIds, moreRunningIds, runningIds } from '#src/kit/sandbox-ids.ts'

/** The user id that files of root of a sandbox (uid 0) have on disks. */
export const uidBase = diskIds.first
export const uidCount = diskIds.count

/**
 * Files of a sandbox may have user ids from 0 up to this number (exclusive), as the sandbox sees them. On disks `uidBase` is added
 * to each id, and larger sums would not be valid ids.
 */
export const mostIds = 2 ** 32 - 1 - uidBase

/** A range of user ids: `inside` is its first id in the sandbox, `outside` its first id on the host. */
export type IdRange = { inside: number; outside: number; count: number }

/**
 * Number of ids at the end of a sandbox's second range of host ids (`ownIds`). They stand for the large ids of its image: those
 * from `commonIds` on.
 */
const largeCount = 4096
/** Every sandbox has all ids that are smaller than this number. */
export const commonIds = uidCount + moreRunningIds.count - largeCount

/**
 * Maximum number of ranges into which the large ids of an image are combined. An id is large if it is not smaller than `commonIds`.
 * The kernel accepts a map of user ids of 4 KiB (user_namespaces(7)), and the line of a range has up to 29 characters, so there is
 * room for 128 ranges.
 */
const mostGroups = 128

export type IdGroup = { first: number; count: number }

/**
 * Combines large ids into at most `mostGroups` ranges. If there are more, the ranges with the smallest gaps are joined, and then
 * include the ids in the gaps. Undefined if the ranges together have more than `largeCount` ids.
 */
export const groupLargeIds = (ids: Iterable<number>): IdGroup[] | undefined => {
  const large = [...new Set(ids)].filter((id) => id >= commonIds && id < mostIds).sort((a, b) => a - b)
  const gaps = large.slice(1).map((id, at) => ({ at, missing: id - (large[at] as number) - 1 }))
  const kept = gaps
    .filter(({ missing }) => missing > 0)
    .sort((a, b) => b.missing - a.missing)
    .slice(0, mostGroups - 1)
  const ends = [...kept.map(({ at }) => at), large.length - 1].sort((a, b) => a - b)
  const groups = ends.flatMap((end, at): IdGroup[] => {
    const [first, last] = [large[at === 0 ? 0 : (ends[at - 1] as number) + 1], large[end]]
    return first === undefined || last === undefined ? [] : [{ first, count: last - first + 1 }]
  })
  return groups.reduce((sum, { count }) => sum + count, 0) <= largeCount ? groups : undefined
}

/** Returns the last two bytes of an IPv4 address as a number. One runner has at most 4000 addresses, which follow each other. */
const numberOf = (address: string) => {
  const [, , high = 0, low = 0] = address.split('.').map(Number)
  return high * 256 + low
}

/**
 * The user ids of every sandbox on a host without idmapped mounts, and of every sandbox with a volume that cannot be mounted so.
 * All these sandboxes have the host ids that their files have on disks.
 */
export const sharedIds: readonly IdRange[] = [{ inside: 0, outside: uidBase, count: uidCount }]

/**
 * Returns the ranges of ids for the sandbox with the network address `address`, `10.x.y.z`. No two running sandboxes of one
 * runner have the same ranges, but sandboxes of two runners on one host may.
 */
export const ownIds = (address: string, large: readonly IdGroup[] = []): IdRange[] => {
  const number = numberOf(address)
  const own = runningIds.first + (number % runningIds.ranges) * uidCount
  const more = moreRunningIds.first + (number % moreRunningIds.ranges) * moreRunningIds.count
  let outside = more + moreRunningIds.count - largeCount
  const rest = large.map(({ first, count }) => {
    outside += count
    return { inside: first, outside: outside - count, count }
  })
  return [
    { inside: 0, outside: own, count: uidCount },
    { inside: uidCount, outside: more, count: commonIds - uidCount },
    ...rest,
  ]
}

/**
 * Makes a map from ids on disks to ids on the host, in the format of uid_map (user_namespaces(7)), for the idmapped mounts of a
 * running sandbox. Files that belong to root of the host on the disk, such as the overlay's own directories, also belong to root
 * of the host in the mount.
 */
export const mapToOwn = (ranges: readonly IdRange[]): string =>
  [{ inside: -uidBase, outside: 0, count: 1 }, ...ranges]
    .map(({ inside, outside, count }) => `${inside + uidBase} ${outside} ${count}\n`)
    .join('')

/** Returns the numeric ids in a text `user` or `user:group`. Names are left out. */
export const idsIn = (user: string): number[] =>
  user
    .split(':')
    .filter((part) => /^\d{1,10}$/.test(part))
    .map(Number)

const mostNamed = 100

/**
 * Returns the numbers in a Dockerfile that are at least `commonIds`. They may be user ids, either in USER or in a command such as
 * `chown`.
 */
export const idsNamedIn = (definition: string): number[] =>
  [...new Set([...definition.matchAll(/(?<![\w.])\d{6,10}(?![\w.])/g)].map(([text]) => Number(text)))]
    .filter((id) => id >= commonIds && id < mostIds)
    .slice(0, mostNamed)
