// A lock between processes of one user, on any operating system: a file that only one process can create. The file contains the id
// of that process. The next process removes a lock that is too old, or whose process has ended.
import { randomUUID } from 'node:crypto'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'

const lookEveryMs = 50
/** A lock that is older than this, in ms, counts as abandoned. A renewal of the session never takes so long. */
const longestHoldMs = 60_000
/**
 * A process that removes an abandoned lock holds a second one, the removal lock. After this many ms, the removal lock counts as
 * abandoned too.
 */
const longestRemovalMs = 10_000

const create = (path: string): Disposable | undefined => {
  const content = `${process.pid} ${hostname()} ${randomUUID()}`
  try {
    writeFileSync(path, content, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
    throw error
  }
  return {
    [Symbol.dispose]: () => {
      // If this process was suspended for long, another process may have taken over the lock.
      if (contentOf(path) === content) rmSync(path, { force: true })
    },
  }
}

const contentOf = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

const ageOf = (path: string): number => {
  try {
    return Date.now() - statSync(path).mtimeMs
  } catch {
    return 0
  }
}

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

const isAbandoned = (path: string): boolean => {
  const [, pid, host] = /^(\d+) (\S+) /.exec(contentOf(path) ?? '') ?? []
  // Several hosts (machines or containers) may share the directory of the lock. This host cannot check a process id of another
  // host.
  const hasEnded = pid !== undefined && host === hostname() && !isRunning(Number(pid))
  return hasEnded || ageOf(path) > longestHoldMs
}

/**
 * Removes an abandoned lock. Only the holder of the removal lock may do this.
 * Otherwise a process could remove a lock that another process has just created.
 */
const removeAbandoned = (path: string): void => {
  if (!isAbandoned(path)) return
  const removal = `${path}.removal`
  if (ageOf(removal) > longestRemovalMs) rmSync(removal, { force: true })
  const removing = create(removal)
  if (removing === undefined) return
  try {
    if (isAbandoned(path)) rmSync(path, { force: true })
  } finally {
    removing[Symbol.dispose]()
  }
}

/** Waits until this process has the lock. Throws if that takes too long, or if the file cannot be created. */
export const waitForLock = async (path: string, timeoutMs: number): Promise<Disposable> => {
  const end = Date.now() + timeoutMs
  for (;;) {
    const lock = create(path)
    if (lock !== undefined) return lock
    removeAbandoned(path)
    if (Date.now() > end) throw new Error(`waited ${timeoutMs / 1000} s for ${path}`)
    await delay(lookEveryMs)
  }
}
