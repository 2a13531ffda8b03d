// The ids of a sandbox's users on the host. On disks and in images they are the ids inside plus a number that is one for all, so
// that files are shifted once and copied as they are. A running sandbox has ranges of its own, and its mounts map the one to the
// other. Ids are users and groups alike.

import { diskIds, moreRunningIds, runningIds } from '#src/kit/sandbox-ids.ts'

/** uid 0 inside is this one on disks. */
export const uidBase = diskIds.first
export const uidCount = diskIds.count

/** Ids that files of images and disks may have, from 0 inside. The largest on a disk is the largest that there is. */
export const mostIds = 2 ** 32 - 1 - uidBase

/** Ids inside that lie side by side on the host. */
export type IdRange = { inside: number; outside: number; count: number }

/** The end of a sandbox's second range is for ids of its image that are larger than what the ranges cover. */
const largeCount = 4096
/** Every sandbox has the ids below this one. */
export const commonIds = uidCount + moreRunningIds.count - largeCount

/** The kernel takes 4 KiB of lines (user_namespaces(7)), and a line has up to 29 characters. */
const mostGroups = 128

export type IdGroup = { first: number; count: number }

/**
 * Large ids in as few groups as they may have. Ids between them are taken in where that saves a group, the closest first. Undefined
 * where there are too many.
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

/** The last two bytes of an address. Sandboxes of one runner have neighbouring ones, and at most 4000. */
const numberOf = (address: string) => {
  const [, , high = 0, low = 0] = address.split('.').map(Number)
  return high * 256 + low
}

/** Where sandboxes have no ranges of their own, they all run as the ids of the disks. */
export const sharedIds: readonly IdRange[] = [{ inside: 0, outside: uidBase, count: uidCount }]

/**
 * The ranges of the sandbox with this address, `10.x.y.z`. Two that run at the same time have different ones, for as many as one
 * runner has addresses for; those of several runners on one host may be the same by chance.
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

/** From ids on disks to those on the host, in lines of uid_map (user_namespaces(7)). Root's own ids stay as they are. */
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

/** Large numbers that a definition names: it may make files of such users, or end as one. */
export const idsNamedIn = (definition: string): number[] =>
  [...new Set([...definition.matchAll(/(?<![\w.])\d{6,10}(?![\w.])/g)].map(([text]) => Number(text)))]
    .filter((id) => id >= commonIds && id < mostIds)
    .slice(0, mostNamed)
