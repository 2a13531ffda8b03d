// Finds processes that keep a server from unmounting a file system, so that the operator can end these processes.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export type Holder = { pid: number; command: string }

/** Calls `ask`, which reads a file of a process in /proc. Returns undefined if `ask` fails because the process has just ended. */
const orNothing = <T>(ask: () => T): T | undefined => {
  try {
    return ask()
  } catch {
    return undefined
  }
}

const pids = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

const commandOf = (pid: number): string => {
  const line = orNothing(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ?? ''
  const words = line.split('\0').join(' ').trim() || (orNothing(() => readFileSync(`/proc/${pid}/comm`, 'utf8')) ?? '?')
  // The command line of a process is untrusted: unprintable characters in it could control the operator's terminal.
  return words
    .trim()
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 80)
}

const described = (pid: number): Holder => ({ pid, command: commandOf(pid) })

/** Finds the processes in whose mount namespace `device` is mounted. */
export const mountHolders = (device: string): Holder[] => {
  const needle = ` ${device} `
  /**
   * Whether each mount namespace contains a mount of the device. Many processes share a namespace, so each namespace is read only
   * once.
   */
  const asked = new Map<string, boolean>()
  return pids()
    .filter((pid) => {
      const namespace = orNothing(() => readlinkSync(`/proc/${pid}/ns/mnt`))
      if (namespace === undefined) return false
      const known = asked.get(namespace)
      if (known !== undefined) return known
      const mounts = orNothing(() => readFileSync(`/proc/${pid}/mountinfo`, 'utf8'))
      if (mounts === undefined) return false
      asked.set(namespace, mounts.includes(needle))
      return mounts.includes(needle)
    })
    .map(described)
}

/**
 * Finds processes with an open file or their working directory below `directory`, which must be mounted in this process's
 * namespace.
 */
export const fileHolders = (directory: string): Holder[] => {
  const isBelow = (path: string | undefined) => path === directory || path?.startsWith(`${directory}/`) === true
  const link = (path: string) => orNothing(() => readlinkSync(path))
  return pids()
    .filter((pid) => {
      const open = (orNothing(() => readdirSync(`/proc/${pid}/fd`)) ?? []).map((name) => `/proc/${pid}/fd/${name}`)
      return [`/proc/${pid}/cwd`, `/proc/${pid}/root`, ...open].some((path) => isBelow(link(path)))
    })
    .map(described)
}

const named = 3

/** Returns a text such as `held by process 41 (sleep 600)`. */
export const sayHolders = (holders: readonly Holder[]): string => {
  if (holders.length === 0) return 'held by no visible process: a mount namespace or a file handle is kept open'
  const first = holders.slice(0, named).map(({ pid, command }) => `process ${pid} (${command})`)
  const rest = holders.length > named ? ` and ${holders.length - named} more` : ''
  return `held by ${first.join(', ')}${rest}`
}
