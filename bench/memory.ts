// Memory use of processes, read from the kernel.
import { readdirSync, readFileSync } from 'node:fs'

/** Proportional memory of a process in bytes (PSS): its private pages, and its share of common pages. */
export const proportionalBytes = (pid: number) =>
  Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) * 1024

/** Pids of the agents, which are PID 1 of every sandbox on this host. */
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
