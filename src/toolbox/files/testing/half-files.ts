// For tests: files that an agent is receiving. They have no name, so they are found by the processes that hold them.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Nothing of a process that ends while we look. */
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
