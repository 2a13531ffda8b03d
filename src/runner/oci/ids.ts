// The ids of a sandbox's users on the host. On disks and in images an id is the inside id plus a constant, so that files are
// shifted once and copied as they are. A running sandbox has its own ranges of ids, and its mounts map the ids on disks to these
// ranges. Ids are users and groups alike.

import { diskIds, moreRunningIds, runningIds } from '#src/kit/sandbox-ids.ts'

/** The id on disks that stands for uid 0 inside. */
export const uidBase = diskIds.first
export const uidCount = diskIds.count

/**
 * Number of ids, counted from 0 inside, that files of images and disks may have. The largest of them, as stored on disks, is the
 * largest id of the kernel.
 */
export const mostIds = 2 ** 32 - 1 - uidBase

/** A range of inside ids that is contiguous on the host. */
export type IdRange = { inside: number; outside: number; count: number }

/** Number of ids at the end of a sandbox's second range. They are reserved for ids of its image that are above `commonIds`. */
const largeCount = 4096
/** Every sandbox has all ids below this number. */
export const commonIds = uidCount + moreRunningIds.count - largeCount

/** The map may have 4 KiB of lines (user_namespaces(7)), and a line has up to 29 characters. This leaves room for 128 groups. */
const mostGroups = 128

export type IdGroup = { first: number; count: number }

/**
 * Groups large ids into at most `mostGroups` ranges. To join two ranges, the ids between them are included, the smallest gaps
 * first. Undefined if the ids do not fit into so many ranges.
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
 * The last two bytes of an address, as a number. Addresses of one runner's sandboxes are neighbours, and there are at most 4000.
 */
const numberOf = (address: string) => {
  const [, , high = 0, low = 0] = address.split('.').map(Number)
  return high * 256 + low
}

/** If sandboxes have no ranges of their own, all of them run with the ids of the disks. */
export const sharedIds: readonly IdRange[] = [{ inside: 0, outside: uidBase, count: uidCount }]

/**
 * The ranges of the sandbox with this address, `10.x.y.z`. Sandboxes that run at the same time have different ranges, up to the
 * number of addresses of one runner. Ranges of several runners on one host may coincide.
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

/** Maps ids on disks to ids on the host, as lines of uid_map (user_namespaces(7)). Root's own ids stay unchanged. */
export const mapToOwn = (ranges: readonly IdRange[]): string =>
  [{ inside: -uidBase, outside: 0, count: 1 }, ...ranges]
    .map(({ inside, outside, count }) => `${inside + uidBase} ${outside} ${count}\n`)
    .join('')

/** Numbers in `user` or `user:group`. */
export const idsIn = (user: string): number[] =>
  user
    .split(':')
    .filter((part) => /^\d{1,10}$/.test(part))
    .map(Number)

const mostNamed = 100

/** Large numbers in a definition: the definition may make files of such users, or set such a user as its USER. */
export const idsNamedIn = (definition: string): number[] =>
  [...new Set([...definition.matchAll(/(?<![\w.])\d{6,10}(?![\w.])/g)].map(([text]) => Number(text)))]
    .filter((id) => id >= commonIds && id < mostIds)
    .slice(0, mostNamed)
