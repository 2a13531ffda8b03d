// Reads the sizes of the kernel's kmalloc(9) caches for uncharged objects. Since Linux 5.14, charged objects have caches of their
// own (`kmalloc-cg-…`). The uncharged caches show slow growth more exactly than the host's total memory.
import { readFileSync } from 'node:fs'

/**
 * Returns the bytes in use of each cache of uncharged objects, from `/proc/slabinfo`. Empty if charged objects have no caches of
 * their own (`kmalloc-cg-…`).
 */
export const parseUnchargedSlabs = (slabinfo: string): Map<string, number> => {
  if (!/^kmalloc-cg-/m.test(slabinfo)) return new Map()
  const caches = slabinfo.matchAll(/^(kmalloc-(?:rnd-\d+-)?\d+k?) +(\d+) +\d+ +(\d+) /gm)
  return new Map([...caches].map(([, name, objects, bytes]) => [name!, Number(objects) * Number(bytes)]))
}

export const readUnchargedSlabs = (): Map<string, number> => parseUnchargedSlabs(readFileSync('/proc/slabinfo', 'utf8'))

/**
 * Only slab caches with more than this fraction of the growth of uncharged memory are measured. Other caches would distort the
 * result.
 */
const leastPart = 1 / 8

/** Returns slab caches that together have grown by at least half of `expectedBytes`. Empty if no caches have grown that much. */
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
