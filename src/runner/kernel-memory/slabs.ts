// Reads the sizes of the kernel's kmalloc(9) caches for objects that no control group is charged for. Since Linux 5.14, charged
// objects have caches of their own (`kmalloc-cg-…`). Slow growth can be measured much more exactly in the uncharged caches than in
// the host's total memory.
import { readFileSync } from 'node:fs'

/**
 * Returns the bytes in use of each cache of uncharged objects. `slabinfo`: the text of `/proc/slabinfo` (slabinfo(5)). Empty if the
 * kernel has no `kmalloc-cg-…` caches, because charged and uncharged objects are then in the same caches.
 */
export const parseUnchargedSlabs = (slabinfo: string): Map<string, number> => {
  if (!/^kmalloc-cg-/m.test(slabinfo)) return new Map()
  const caches = slabinfo.matchAll(/^(kmalloc-(?:rnd-\d+-)?\d+k?) +(\d+) +\d+ +(\d+) /gm)
  return new Map([...caches].map(([, name, objects, bytes]) => [name!, Number(objects) * Number(bytes)]))
}

export const readUnchargedSlabs = (): Map<string, number> => parseUnchargedSlabs(readFileSync('/proc/slabinfo', 'utf8'))

/**
 * A cache of the kernel is measured only if it has grown by at least this fraction of the growth of all uncharged memory. Other
 * caches would distort the result.
 */
const leastPart = 1 / 8

/** Returns the caches that together have grown by at least half of `expectedBytes`. Empty if there are none. */
export const findGrownSlabs = (
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  expectedBytes: number,
): string[] => {
  const grown = [...after]
    .map(([name, bytes]) => [name, bytes - (before.get(name) ?? 0)] as const)
    .filter(([, bytes]) => bytes > expectedBytes * leastPart)
  const sum = grown.reduce((all, [, bytes]) => all + bytes, 0)
  return sum >= expectedBytes / 2 ? grown.map(([name]) => name) : []
}

export const sumSlabs = (slabs: ReadonlyMap<string, number>, names: readonly string[]): number =>
  names.reduce((sum, name) => sum + (slabs.get(name) ?? 0), 0)
