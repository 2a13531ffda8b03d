// Computes a sandbox's kernel limits from its assignment.
import { readFileSync } from 'node:fs'

export const GiB = 1024 ** 3

const cpuPeriodMicroseconds = 100_000

export type Compute = { cpu: number; memoryGiB: number }

/**
 * Limit of processes and threads together. A thread takes about 30 KiB, so at the limit a sandbox still has most of its memory,
 * and a fork bomb ends before the host notices. The maximum is the default of an ordinary machine. The agent tells programs the
 * limit (agent/src/setup.c).
 */
export const pidsLimit = ({ memoryGiB }: Pick<Compute, 'memoryGiB'>) =>
  Math.min(32_768, Math.max(1024, Math.floor(memoryGiB * 4096)))

export const cpuLimit = ({ cpu }: Compute) => ({
  shares: Math.max(2, Math.round(cpu * 1024)),
  quota: Math.max(1000, Math.round(cpu * cpuPeriodMicroseconds)),
  period: cpuPeriodMicroseconds,
})

export const memoryLimitBytes = ({ memoryGiB }: Compute) => Math.round(memoryGiB * GiB)

/** Limit of a sandbox's socket buffers, where the kernel counts them separately from memory: cgroup v1. */
export const socketLimitBytes = (compute: Compute) => Math.round(memoryLimitBytes(compute) / 8)

/** Maximum number of open files of each process in a sandbox. */
const openFilesWanted = 65_536

/** Parses the hard limits in `/proc/{pid}/limits`. `Infinity`: no limit. */
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
 * Limits of a sandbox's processes. They are never above the runner's own hard limits, because a runner in a virtual machine
 * may lack the right to raise them. A core limit of one byte is the only value that also prevents the host's crash handler
 * from running for a sandbox (core(5)).
 */
export const resourceLimits = (own = parseHardLimits(readFileSync('/proc/self/limits', 'utf8'))): ResourceLimit[] => {
  const both = (type: string, value: number) => ({ type, soft: value, hard: value })
  return [
    both('RLIMIT_NOFILE', Math.min(openFilesWanted, own.openFiles)),
    both('RLIMIT_CORE', Math.min(1, own.coreBytes)),
  ]
}

/** Limit of files and directories on each in-memory file system: kernel data attached to a file may be charged to nobody. */
export const memoryFiles = { dev: 4096, shm: 16_384 } as const

/**
 * Half of the memory, as on an ordinary machine. Browsers need much shared memory. Shared memory counts against the memory limit.
 */
export const sharedMemoryBytes = (memoryGiB: number) => Math.max(1, Math.floor(memoryGiB * 512)) * 1024 * 1024
