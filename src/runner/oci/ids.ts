// The user ids of sandboxes on the host. Group ids are handled in the same way. On disks and in images, a file's owner is the id in
// the sandbox plus `uidBase`, so disks can be copied between sandboxes. A running sandbox has host ids of its own. The sandbox's
// idmapped mounts show each file as owned by one of these host ids, instead of the id on the disk.

import { diskIds, moreRunningIds, runningIds } from '#src/kit/sandbox-ids.ts'

/** The user id that files of root of a sandbox (uid 0) have on disks. */
export const uidBase = diskIds.first
export const uidCount = diskIds.count

/** Files of a sandbox have ids below this number, as the sandbox sees them. With `uidBase` added, larger ids would be invalid. */
export const mostIds = 2 ** 32 - 1 - uidBase

/** A range of user ids. `inside`: the range's first id in the sandbox. `outside`: the range's first id on the host. */
export type IdRange = { inside: number; outside: number; count: number }

/**
 * User ids of an image from `commonIds` on are called large. Each sandbox has this many host ids for large ids: the last ids of the
 * sandbox's second range (`moreRunningIds`).
 */
const largeCount = 4096
/** Every sandbox has all user ids below this number. */
export const commonIds = uidCount + moreRunningIds.count - largeCount

/**
 * Maximum number of ranges for the user ids from `commonIds` on that an image needs. Each range is a line of the id map. The kernel
 * accepts an id map of 4 KiB (user_namespaces(7)), and a line has up to 29 characters.
 */
const mostGroups = 128

export type IdGroup = { first: number; count: number }

/**
 * Combines the user ids from `commonIds` on into at most `mostGroups` ranges for an id map, joining ids with the smallest gaps.
 * Undefined if these ranges have more than `largeCount` ids together.
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

/**
 * Returns the last two bytes of an IPv4 address as a number. One runner has at most 4000 addresses for sandboxes, which follow each
 * other.
 */
const numberOf = (address: string) => {
  const [, , high = 0, low = 0] = address.split('.').map(Number)
  return high * 256 + low
}

/**
 * Ids for a sandbox that has no idmapped mounts, because the host or a volume does not support them. On the host, the sandbox's
 * processes then have the ids that own its files on disks.
 */
export const sharedIds: readonly IdRange[] = [{ inside: 0, outside: uidBase, count: uidCount }]

/**
 * Returns the ranges of ids for the sandbox with this network address. No two running sandboxes of one runner share an id, but
 * sandboxes of two runners on one host may.
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
 * Makes the id map for idmapped mounts, from ids on disks to ids on the host (user_namespaces(7)). The host's root stays root,
 * because root owns the overlay's own directories.
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
 * Returns the numbers in a Dockerfile from `commonIds` on. Such numbers may be user ids, in USER or in a command such as `chown`.
 */
export const idsNamedIn = (definition: string): number[] =>
  [...new Set([...definition.matchAll(/(?<![\w.])\d{6,10}(?![\w.])/g)].map(([text]) => Number(text)))]
    .filter((id) => id >= commonIds && id < mostIds)
    .slice(0, mostNamed)
