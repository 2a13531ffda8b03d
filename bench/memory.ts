// Memory use of processes, read from the kernel.
import { readdirSync, readFileSync } from 'node:fs'

/**
 * Returns the memory that a process uses (PSS), in bytes: its private pages, and its share of pages that several processes map.
 */
export const proportionalBytes = (pid: number) =>
  Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) * 1024

/** Returns the pids of all agents on this host. Each is PID 1 of a sandbox. */
export const agentPids = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('/dev/.alcove/agent')
      } catch {
        return false
      }
    })
