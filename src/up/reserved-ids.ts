// Reserves the ids of sandboxes' disks in /etc/subuid and /etc/subgid, so that `useradd` gives them to nobody. Uses the lock files
// that `useradd` uses.
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { diskIds } from '#src/kit/sandbox-ids.ts'

const files = ['/etc/subuid', '/etc/subgid']
const ours = `alcove:${diskIds.first}:${diskIds.count}`

export const overlapsDiskIds = (line: string): boolean => {
  const [, first = '', count = ''] = line.split(':')
  const [from, many] = [Number(first), Number(count)]
  return many > 0 && from < diskIds.first + diskIds.count && from + many > diskIds.first
}

const changing = (file: string, change: (lines: readonly string[]) => readonly string[]): void => {
  // If /etc/subuid or /etc/subgid does not exist, no program allocates ids from it, so there is nothing to reserve.
  if (!existsSync(file)) return
  const lock = `${file}.lock`
  try {
    writeFileSync(lock, `${process.pid}`, { flag: 'wx', mode: 0o600 })
  } catch {
    return // Another program, such as `useradd`, has locked `file`. The next start of `up` tries again.
  }
  try {
    const before = readFileSync(file, 'utf8')
    const lines = before.split('\n').filter((line) => line !== '')
    const after = change(lines)
    if (after === lines) return
    const draft = `${file}.alcove`
    writeFileSync(draft, after.map((line) => `${line}\n`).join(''), { mode: 0o600, flush: true })
    chmodSync(draft, statSync(file).mode & 0o777)
    renameSync(draft, file)
  } finally {
    rmSync(lock, { force: true })
  }
}

/**
 * Reserves the ids of sandboxes' disks. A file that already gives some of these ids to a user stays unchanged, and `doctor` reports
 * the line.
 */
export const reserveIds = (places: readonly string[] = files): void => {
  for (const file of places) changing(file, (lines) => (lines.some(overlapsDiskIds) ? lines : [...lines, ours]))
}

export const releaseIds = (places: readonly string[] = files): void => {
  for (const file of places)
    changing(file, (lines) => (lines.includes(ours) ? lines.filter((line) => line !== ours) : lines))
}
