// Reads how much memory the kernel itself uses on this host, and how much of this memory counts towards no limit.
import { readFileSync } from 'node:fs'
import { cgroupAt } from '../cgroup/cgroup.ts'
import type { CgroupLayout } from '../cgroup/layout.ts'

export type KernelMemory = {
  /** Bytes of kernel memory that the kernel cannot free when memory is short. */
  unreclaimable: number
  /** Bytes of caches that the kernel can free when memory is short. */
  reclaimable: number
  /** Bytes of memory that programs of this host can still allocate. */
  available: number
  total: number
}

/**
 * Parses `/proc/meminfo` (proc(5)). Computes `unreclaimable` by subtraction, because no line counts some kernel memory: for
 * example, socket buffers and tables of poll(2). From the total memory, the function subtracts:
 * - free memory (the line `MemFree`)
 * - free pages that each processor keeps for itself (`atHandBytes`), because the line `MemFree` does not contain them
 * - caches, and pages of processes and files
 * - compressed swap, which has its own limit
 * - memory that the hypervisor has taken back
 */
export const parseKernelMemory = (
  meminfo: string,
  { compressedBytes = 0, atHandBytes = 0 }: { compressedBytes?: number; atHandBytes?: number } = {},
): KernelMemory => {
  const values = new Map(
    [...meminfo.matchAll(/^(\S+):\s+(\d+) kB$/gm)].map(([, name, kB]) => [name, Number(kB) * 1024]),
  )
  const of = (name: string) => values.get(name) ?? 0
  const reclaimable = of('KReclaimable') || of('SReclaimable')
  const lists = of('Active') + of('Inactive') + of('Unevictable')
  const others = of('Hugetlb') + of('Balloon') + Math.max(of('Zswap'), compressedBytes) + atHandBytes
  return {
    unreclaimable: of('MemTotal') - of('MemFree') - lists - reclaimable - others,
    reclaimable,
    available: of('MemAvailable'),
    total: of('MemTotal'),
  }
}

/** Parses `/proc/vmstat`. Returns the number of pages of compressed swap (zram, zswap). */
export const parseCompressedPages = (vmstat: string): number => Number(/^nr_zspages (\d+)$/m.exec(vmstat)?.[1] ?? 0)

/** Parses `/proc/zoneinfo`. Returns the number of free pages that processors keep for themselves. */
export const parsePagesAtHand = (zoneinfo: string): number =>
  [...zoneinfo.matchAll(/^ +count: +(\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0)

const pageBytes = Number(/^KernelPageSize: +(\d+) kB$/m.exec(readFileSync('/proc/self/smaps', 'utf8'))?.[1] ?? 4) * 1024

export const readKernelMemory = (): KernelMemory => {
  const meminfo = readFileSync('/proc/meminfo', 'utf8')
  // `/proc/vmstat` is long, so it is read only if the host has swap. Most hosts have no swap.
  const hasSwap = !/^SwapTotal:\s+0 kB$/m.test(meminfo)
  return parseKernelMemory(meminfo, {
    compressedBytes: hasSwap ? parseCompressedPages(readFileSync('/proc/vmstat', 'utf8')) * pageBytes : 0,
    atHandBytes: parsePagesAtHand(readFileSync('/proc/zoneinfo', 'utf8')) * pageBytes,
  })
}

/** Parses `/proc/net/sockstat`. Returns the number of memory pages with data of TCP and UDP sockets, in all network namespaces. */
export const parseSocketPages = (sockstat: string): number =>
  [...sockstat.matchAll(/^(?:TCP|UDP): .*\bmem (\d+)$/gm)].reduce((sum, [, pages]) => sum + Number(pages), 0)

/**
 * Returns the bytes of data in all TCP and UDP sockets of this host and its sandboxes. Most of this data waits for slow clients of
 * the host's own programs.
 */
export const socketBytes = (): number => parseSocketPages(readFileSync('/proc/net/sockstat', 'utf8')) * pageBytes

/**
 * Returns the bytes of kernel memory that count towards no memory limit: unreclaimable memory, minus the kernel memory that is
 * charged to control groups.
 */
export const unchargedBytes = (layout: CgroupLayout, { unreclaimable }: KernelMemory): number =>
  unreclaimable - (cgroupAt(layout, '/').kernelMemory() ?? 0)
