// One `up` per data directory. The lock lies on an open file of this process, so the kernel frees it when the process
// ends, however it ends: there is no stale lock.
import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'

/** Answers false when another process holds the lock. It is kept until this process ends. */
export const takeLock = (path: string): boolean => {
  // Opened close-on-exec: no program that we start keeps the lock alive after us.
  const file = openSync(path, 'a', 0o600)
  // Node has no flock(2); the lock belongs to the open file, which flock(1) only borrows.
  const { status, error } = spawnSync('flock', ['--nonblock', '3'], { stdio: ['ignore', 'ignore', 'ignore', file] })
  if (error) throw error
  if (status === 0) return true
  closeSync(file)
  return false
}
