// What /proc says of a sandbox's first process. A pid alone names nobody for long; with its start time it does for ever.
import { readFileSync } from 'node:fs'
import { readIfThere } from './cgroup/files.ts'

export type Init = { pid: number; startTime: string }

/** Field 22 of `/proc/{pid}/stat`. The second field is a name in brackets that may hold anything, brackets too. */
export const parseStartTime = (stat: string): string | undefined => stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]

/** A process that has ended but is not yet waited for counts as gone. */
const isZombie = (stat: string) => stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')

export const isAlive = ({ pid, startTime }: Init): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return parseStartTime(stat) === startTime && !isZombie(stat)
  } catch {
    return false
  }
}

/** The numbers of a process in each pid namespace it is in, the host's first. */
export const parseNamespacePids = (status: string): number[] =>
  /^NSpid:\s*(.*)$/m.exec(status)?.[1]?.split(/\s+/).map(Number) ?? []

/** Among the processes of a sandbox's cgroup, the one that is PID 1 inside. */
export const findInit = async (pids: readonly number[]): Promise<Init | undefined> => {
  for (const pid of pids) {
    const status = await readOrNothing(`/proc/${pid}/status`)
    const numbers = parseNamespacePids(status)
    if (numbers.length < 2 || numbers.at(-1) !== 1) continue
    const stat = await readOrNothing(`/proc/${pid}/stat`)
    const startTime = parseStartTime(stat)
    if (startTime !== undefined && !isZombie(stat)) return { pid, startTime }
  }
  return undefined
}

/** A process that ends while it is read reads as nothing. */
const readOrNothing = async (path: string): Promise<string> => {
  try {
    return (await readIfThere(path)) ?? ''
  } catch {
    return ''
  }
}

/** A new one for every boot of the machine. */
export const bootId = () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
