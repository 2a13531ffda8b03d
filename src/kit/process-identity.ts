// Identity of a process: its pid and start time. A pid alone may belong to another process by now; with the start time it
// names one process until the next reboot.
import { readFileSync } from 'node:fs'

export type ProcessIdentity = { pid: number; startTime: string }

/**
 * Reads state and start time of a process. The start time is field 22 of stat (`proc(5)`), in clock ticks since boot.
 * Field 2 may hold spaces and brackets.
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

/** The identity of a running process. */
export const identityOf = (pid: number): ProcessIdentity => ({ pid, startTime: findStat(pid)?.startTime ?? 'gone' })

/** Whether the process runs. False for a zombie too, because a zombie holds no resources any more. */
export const isAlive = ({ pid, startTime }: ProcessIdentity): boolean => {
  const stat = findStat(pid)
  return stat !== undefined && stat.startTime === startTime && stat.state !== 'Z' && stat.state !== 'X'
}

/** Sends a signal, but never to another process that got the same pid later. */
export const signalProcess = (identity: ProcessIdentity, signal: NodeJS.Signals): boolean => {
  if (!isAlive(identity)) return false
  try {
    return process.kill(identity.pid, signal)
  } catch {
    return false
  }
}

/**
 * Waits until the process has ended, and returns whether it has. Used for processes that are not our children, because
 * Node emits no exit event for these.
 */
export const waitUntilGone = async (identity: ProcessIdentity, timeoutMs: number): Promise<boolean> => {
  const end = Date.now() + timeoutMs
  while (isAlive(identity)) {
    if (Date.now() >= end) return false
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return true
}
