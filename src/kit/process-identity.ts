// Identifies a process by pid and start time, until the next reboot. The kernel reuses the pid of a process that has ended.
import { readFileSync } from 'node:fs'

export type ProcessIdentity = { pid: number; startTime: string }

/**
 * Reads state and start time (field 22, in clock ticks since boot) from /proc/PID/stat. Fields are counted from the end of
 * field 2, which may contain spaces and brackets.
 */
const findStat = (pid: number): { state: string; startTime: string } | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0] ?? '', startTime: fields[19] ?? '' }
  } catch {
    return undefined
  }
}

/** Returns the identity of a running process. */
export const identityOf = (pid: number): ProcessIdentity => ({ pid, startTime: findStat(pid)?.startTime ?? 'gone' })

/** Whether the process runs. A zombie does not count as running, because it uses no resources any more. */
export const isAlive = ({ pid, startTime }: ProcessIdentity): boolean => {
  const stat = findStat(pid)
  return stat !== undefined && stat.startTime === startTime && stat.state !== 'Z' && stat.state !== 'X'
}

/** Sends a signal to the process, never to another process that has the same pid now. Returns false if the process does not run. */
export const signalProcess = (identity: ProcessIdentity, signal: NodeJS.Signals): boolean => {
  if (!isAlive(identity)) return false
  try {
    return process.kill(identity.pid, signal)
  } catch {
    return false
  }
}

/** Waits until the process has ended, and returns whether it has. Use this for processes that are not children of this process. */
export const waitUntilGone = async (identity: ProcessIdentity, timeoutMs: number): Promise<boolean> => {
  const end = Date.now() + timeoutMs
  while (isAlive(identity)) {
    if (Date.now() >= end) return false
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return true
}
