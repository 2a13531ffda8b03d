// Reads facts about a sandbox's first process from /proc.
import { readFileSync } from 'node:fs'
import { identityOf, isAlive, type ProcessIdentity } from '#src/kit/process-identity.ts'
import { readIfThere } from '#src/runner/cgroup/files.ts'

export type Init = ProcessIdentity

/**
 * Returns the ids that a process has in its pid namespaces, the id on the host first. `status`: content of `/proc/<pid>/status`.
 */
export const parseNamespacePids = (status: string): number[] =>
  /^NSpid:\s*(.*)$/m.exec(status)?.[1]?.split(/\s+/).map(Number) ?? []

/** Finds, among the processes of a sandbox's cgroup, the one that is PID 1 inside the sandbox. */
export const findInit = async (pids: readonly number[]): Promise<Init | undefined> => {
  for (const pid of pids) {
    const status = await readOrNothing(`/proc/${pid}/status`)
    const numbers = parseNamespacePids(status)
    if (numbers.length < 2 || numbers.at(-1) !== 1) continue
    const init = identityOf(pid)
    if (isAlive(init)) return init
  }
  return undefined
}

/** Reads a file of a process in /proc. Returns an empty text if the process has ended. */
const readOrNothing = async (path: string): Promise<string> => {
  try {
    return (await readIfThere(path)) ?? ''
  } catch {
    return ''
  }
}

/** Returns the random id that the kernel has chosen for the current boot of the machine. */
export const bootId = () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
