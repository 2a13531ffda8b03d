// For tests: finds files that an agent is still receiving. Such files have no name, only an open descriptor.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Returns what `look` returns, or an empty list if the examined process has ended meanwhile. */
const orNothing = <T>(look: () => T[]): T[] => {
  try {
    return look()
  } catch {
    return []
  }
}

export const halfFilesOf = ({ pid }: { pid: number }): string[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter(Boolean)
    .flatMap((child) => orNothing(() => readdirSync(`/proc/${child}/fd`).map((fd) => `/proc/${child}/fd/${fd}`)))
    .flatMap((link) => orNothing(() => [readlinkSync(link)]))
    .filter((target) => /\/#\d+ \(deleted\)$/.test(target))
