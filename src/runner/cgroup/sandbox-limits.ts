// Computes a sandbox's kernel limits from its assignment.
import { readFileSync } from 'node:fs'

export const GiB = 1024 ** 3

const cpuPeriodMicroseconds = 100_000

export type Compute = { cpu: number; memoryGiB: number }

/**
 * Returns the maximum number of processes and threads of a sandbox, which stops a fork bomb. A thread takes about 30 KiB, so even
 * this many leave most memory free. The limit is at most 32,768, Linux's default. Programs see the limit as a resource limit
 * (agent/src/setup.c).
 */
export const pidsLimit = ({ memoryGiB }: Pick<Compute, 'memoryGiB'>) =>
  Math.min(32_768, Math.max(1024, Math.floor(memoryGiB * 4096)))

export const cpuLimit = ({ cpu }: Compute) => ({
  shares: Math.max(2, Math.round(cpu * 1024)),
  quota: Math.max(1000, Math.round(cpu * cpuPeriodMicroseconds)),
  period: cpuPeriodMicroseconds,
})

export const memoryLimitBytes = ({ memoryGiB }: Compute) => Math.round(memoryGiB * GiB)

/**
 * Returns the limit of a sandbox's socket buffers in bytes. Used only with cgroup v1, which counts socket buffers separately from
 * memory.
 */
export const socketLimitBytes = (compute: Compute) => Math.round(memoryLimitBytes(compute) / 8)

/** Maximum number of open files of a process in a sandbox. */
const openFilesWanted = 65_536

/** Parses the hard limits in `/proc/{pid}/limits`. `Infinity` means no limit. */
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
 * Returns the resource limits of each process in a sandbox. They never exceed the runner's own limits, because a runner in a
 * container may not raise its own limits.
 */
export const resourceLimits = (own = parseHardLimits(readFileSync('/proc/self/limits', 'utf8'))): ResourceLimit[] => {
  const both = (type: string, value: number) => ({ type, soft: value, hard: value })
  return [
    both('RLIMIT_NOFILE', Math.min(openFilesWanted, own.openFiles)),
    // With 0 instead of 1 byte, the kernel would start the host's crash handler for a crashed program (core(5)).
    both('RLIMIT_CORE', Math.min(1, own.coreBytes)),
  ]
}

/**
 * Maximum number of files and directories on each in-memory file system of a sandbox. Many empty files could otherwise fill
 * kernel memory that counts towards no sandbox's memory limit.
 */
export const memoryFiles = { dev: 4096, shm: 16_384 } as const

/**
 * Returns the size of a sandbox's shared memory: half of its memory, as on an ordinary machine. Shared memory in use counts
 * towards the sandbox's memory limit.
 */
export const sharedMemoryBytes = (memoryGiB: number) => Math.max(1, Math.floor(memoryGiB * 512)) * 1024 * 1024
