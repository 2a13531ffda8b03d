// A pid alone may belong to somebody else by now; with its start time it names one process until the next reboot.
import { readFileSync } from 'node:fs'

export type ProcessIdentity = { pid: number; startTime: string }

/** `proc(5)`: field 22 of stat, in clock ticks since boot; the command in field 2 may hold spaces and brackets. */
const findStat = (pid: number): { state: string; startTime: string } | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0] ?? '', startTime: fields[19] ?? '' }
  } catch {
    return undefined
  }
}

/** The identity of a process that runs now. */
export const identityOf = (pid: number): ProcessIdentity => ({ pid, startTime: findStat(pid)?.startTime ?? 'gone' })

/** False for a zombie: it holds nothing any more. */
export const isAlive = ({ pid, startTime }: ProcessIdentity): boolean => {
  const stat = findStat(pid)
  return stat !== undefined && stat.startTime === startTime && stat.state !== 'Z' && stat.state !== 'X'
}

/** Sends nothing to a process that only inherited the pid. */
export const signalProcess = (identity: ProcessIdentity, signal: NodeJS.Signals): boolean => {
  if (!isAlive(identity)) return false
  try {
    return process.kill(identity.pid, signal)
  } catch {
    return false
  }
}

/** Waits until it is gone; answers whether it is. For processes that are not our children, so there is no event. */
export const waitUntilGone = async (identity: ProcessIdentity, timeoutMs: number): Promise<boolean> => {
  const end = Date.now() + timeoutMs
  while (isAlive(identity)) {
    if (Date.now() >= end) return false
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return true
}
