// The numbers that bound a sandbox, made from what its assignment allows.
import { readFileSync } from 'node:fs'

export const GiB = 1024 ** 3

const cpuPeriodMicroseconds = 100_000

export type Compute = { cpu: number; memoryGiB: number }

/**
 * Processes and threads together. The memory of one thread is about 30 KiB, so a sandbox that is full of them still has most
 * of its memory, and a fork bomb meets this before the host notices. The most is what a machine of its own has by default. The agent tells programs (agent/src/setup.c).
 */
export const pidsLimit = ({ memoryGiB }: Pick<Compute, 'memoryGiB'>) =>
  Math.min(32_768, Math.max(1024, Math.floor(memoryGiB * 4096)))

export const cpuLimit = ({ cpu }: Compute) => ({
  shares: Math.max(2, Math.round(cpu * 1024)),
  quota: Math.max(1000, Math.round(cpu * cpuPeriodMicroseconds)),
  period: cpuPeriodMicroseconds,
})

export const memoryLimitBytes = ({ memoryGiB }: Compute) => Math.round(memoryGiB * GiB)

/** In the buffers of its sockets, where the kernel counts those beside the memory: cgroup v1. */
export const socketLimitBytes = (compute: Compute) => Math.round(memoryLimitBytes(compute) / 8)

/** Files a process of a sandbox may have open. */
const openFilesWanted = 65_536

/** The hard limits of a process, from its `/proc/{pid}/limits`. `Infinity` stands for none. */
export const parseHardLimits = (text: string): { openFiles: number; coreBytes: number } => {
  const hard = (name: string) => {
    const words = text.split('\n').find((line) => line.startsWith(name))
    const value = words?.slice(name.length).trim().split(/\s+/)[1]
    return value === undefined || value === 'unlimited' ? Number.POSITIVE_INFINITY : Number(value)
  }
  return { openFiles: hard('Max open files'), coreBytes: hard('Max core file size') }
}

export type ResourceLimit = { type: string; soft: number; hard: number }

/**
 * Never above our own hard limits: raising those takes a right that a runner inside a virtual machine may lack. A core
 * limit of one byte is the only one that also keeps the host's own crash handler from being run for a sandbox (core(5)).
 */
export const resourceLimits = (own = parseHardLimits(readFileSync('/proc/self/limits', 'utf8'))): ResourceLimit[] => {
  const both = (type: string, value: number) => ({ type, soft: value, hard: value })
  return [
    both('RLIMIT_NOFILE', Math.min(openFilesWanted, own.openFiles)),
    both('RLIMIT_CORE', Math.min(1, own.coreBytes)),
  ]
}

/** Files, directories and the like on each of a sandbox's file systems in memory: what hangs on them may count as nobody's. */
export const memoryFiles = { dev: 4096, shm: 16_384 } as const

/** Half of the memory, as on an ordinary machine: browsers need much of it, and it counts against the memory limit. */
export const sharedMemoryBytes = (memoryGiB: number) => Math.max(1, Math.floor(memoryGiB * 512)) * 1024 * 1024
