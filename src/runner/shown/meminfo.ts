// Makes a sandbox's `/proc/meminfo` (proc(5)), which shows the sandbox's memory limit as the memory of the machine.

import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import type { MemoryUse } from '../cgroup/memory-use.ts'

const line = (name: string, bytes: number) =>
  `${`${name}:`.padEnd(16)}${String(Math.floor(Math.max(0, bytes) / 1024)).padStart(8)} kB\n`

export const renderMeminfo = (memoryGiB: number, use: MemoryUse): string => {
  const total = memoryGiB * GiB
  const free = Math.max(0, total - use.used)
  // Memory counts as available if the kernel would free it before killing a process.
  const available = Math.min(total, free + use.activeFile + use.inactiveFile + use.slabReclaimable)
  const rows: [string, number][] = [
    ['MemTotal', total],
    ['MemFree', free],
    ['MemAvailable', available],
    ['Buffers', 0],
    ['Cached', use.cached],
    ['SwapCached', 0],
    ['Active', use.activeAnonymous + use.activeFile],
    ['Inactive', use.inactiveAnonymous + use.inactiveFile],
    ['Active(anon)', use.activeAnonymous],
    ['Inactive(anon)', use.inactiveAnonymous],
    ['Active(file)', use.activeFile],
    ['Inactive(file)', use.inactiveFile],
    ['Unevictable', use.unevictable],
    ['Mlocked', 0],
    // A sandbox has no swap, because its memory limit counts memory and swap together.
    ['SwapTotal', 0],
    ['SwapFree', 0],
    ['Dirty', use.dirty],
    ['Writeback', use.writeback],
    ['AnonPages', use.anonymous],
    ['Mapped', use.mapped],
    ['Shmem', use.shared],
    ['KReclaimable', use.slabReclaimable],
    ['Slab', use.slabReclaimable + use.slabUnreclaimable],
    ['SReclaimable', use.slabReclaimable],
    ['SUnreclaim', use.slabUnreclaimable],
  ]
  return rows.map(([name, bytes]) => line(name, bytes)).join('')
}
