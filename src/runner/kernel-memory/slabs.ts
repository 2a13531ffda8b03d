// The kernel's caches of plain kmalloc(9), which are never charged to a control group. Since Linux 5.14, charged objects have
// separate caches (`kmalloc-cg-…`). These caches show slow growth much more exactly than the host's total memory.
import { readFileSync } from 'node:fs'

/** Bytes in use by cache, from `/proc/slabinfo` (slabinfo(5)). Empty if charged objects share the caches. */
export const parseUnchargedSlabs = (slabinfo: string): Map<string, number> => {
  if (!/^kmalloc-cg-/m.test(slabinfo)) return new Map()
  const caches = slabinfo.matchAll(/^(kmalloc-(?:rnd-\d+-)?\d+k?) +(\d+) +\d+ +(\d+) /gm)
  return new Map([...caches].map(([, name, objects, bytes]) => [name!, Number(objects) * Number(bytes)]))
}

export const readUnchargedSlabs = (): Map<string, number> => parseUnchargedSlabs(readFileSync('/proc/slabinfo', 'utf8'))

/** A cache with a smaller part of the growth is ignored: such a cache would make the measurement less exact. */
const leastPart = 1 / 8

/** The caches that together grew by at least half of `expectedBytes`. Empty if they grew less. */
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
