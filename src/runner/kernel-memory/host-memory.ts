// How much memory the kernel itself uses on this host, and how much of that is charged to control groups.
import { readFileSync } from 'node:fs'
import { cgroupAt } from '../cgroup/cgroup.ts'
import type { CgroupLayout } from '../cgroup/layout.ts'

export type KernelMemory = {
  /** Bytes that the kernel cannot free when memory is short. */
  unreclaimable: number
  /** Bytes of caches that the kernel can free. */
  reclaimable: number
  /** Bytes that the host could still give to programs. */
  available: number
  total: number
}

/**
 * Parses `/proc/meminfo` (proc(5)). Unreclaimable is all memory that is neither free, nor on a list of pages (processes, files,
 * shared memory), nor a cache. Adding up the named lines (`SUnreclaim`, `KernelStack`, `PageTables` …) would miss pages that no
 * line counts, such as tables of poll(2) and socket buffers. Compressed swap is not counted: it belongs to programs, whose swap
 * is limited. A balloon is not counted: it belongs to the hypervisor. `MemFree` leaves out the free pages that each processor
 * keeps at hand, up to a GiB, so they are added.
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

/** Pages of compressed swap (zram, zswap), from `/proc/vmstat`. */
export const parseCompressedPages = (vmstat: string): number => Number(/^nr_zspages (\d+)$/m.exec(vmstat)?.[1] ?? 0)

/** Free pages that each processor keeps for itself, from `/proc/zoneinfo`. */
export const parsePagesAtHand = (zoneinfo: string): number =>
  [...zoneinfo.matchAll(/^ +count: +(\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0)

const pageBytes = Number(/^KernelPageSize: +(\d+) kB$/m.exec(readFileSync('/proc/self/smaps', 'utf8'))?.[1] ?? 4) * 1024

export const readKernelMemory = (): KernelMemory => {
  const meminfo = readFileSync('/proc/meminfo', 'utf8')
  // `/proc/vmstat` is read only where there is swap: it is long, and most hosts have no swap.
  const hasSwap = !/^SwapTotal:\s+0 kB$/m.test(meminfo)
  return parseKernelMemory(meminfo, {
    compressedBytes: hasSwap ? parseCompressedPages(readFileSync('/proc/vmstat', 'utf8')) * pageBytes : 0,
    atHandBytes: parsePagesAtHand(readFileSync('/proc/zoneinfo', 'utf8')) * pageBytes,
  })
}

/** Pages that hold data waiting in TCP and UDP sockets, in all network namespaces, from `/proc/net/sockstat`. */
export const parseSocketPages = (sockstat: string): number =>
  [...sockstat.matchAll(/^(?:TCP|UDP): .*\bmem (\d+)$/gm)].reduce((sum, [, pages]) => sum + Number(pages), 0)

/** Bytes that wait in the sockets of this host. Most of them belong to the host's own programs, for slow readers. */
export const socketBytes = (): number => parseSocketPages(readFileSync('/proc/net/sockstat', 'utf8')) * pageBytes

/** Memory that no limit counts: unreclaimable memory minus what is charged to control groups. */
export const unchargedBytes = (layout: CgroupLayout, { unreclaimable }: KernelMemory): number =>
  unreclaimable - (cgroupAt(layout, '/').kernelMemory() ?? 0)
