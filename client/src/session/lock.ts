// A lock between processes of one user, on any operating system: a file that only one process can create. It names its
// process. A lock whose process has ended, or that is older than any holder needs it, is removed by the next process.
import { randomUUID } from 'node:crypto'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'

const lookEveryMs = 50
/** Age after which a lock is abandoned. Longer than a renewal of the session ever takes. */
const longestHoldMs = 60_000
/** Age after which the lock for removing a lock is abandoned. It is only held while this process runs without a pause. */
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
      // A holder that was suspended for too long has lost the lock, and must not remove that of another process.
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
  // A process of another machine or container, which shares the directory, cannot be looked for.
  const hasEnded = pid !== undefined && host === hostname() && !isRunning(Number(pid))
  return hasEnded || ageOf(path) > longestHoldMs
}

/** Removes an abandoned lock. A second lock makes sure that no process removes a lock that another has just created. */
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

/** Waits until this process gets the lock. Throws if it does not get it in time, or if the file cannot be created. */
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
