// What processes cost in memory, asked of the kernel.
import { readdirSync, readFileSync } from 'node:fs'

/** Memory of a process: its own pages, and its share of common ones. */
export const proportionalBytes = (pid: number) =>
  Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) * 1024

/** Every PID 1 of a sandbox on this host. */
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
