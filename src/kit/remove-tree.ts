// Removes a tree that others have written. A path in it may be longer than PATH_MAX, so a call with the whole path fails
// (ENAMETOOLONG). rm(1) works because it walks directory by directory.
import { setTimeout as delay } from 'node:timers/promises'
import { runCommand } from './run-command.ts'

const timeoutMs = 10 * 60_000
const patienceMs = 100

/**
 * Removes the tree. Succeeds if the path does not exist. `tries`: number of attempts, with growing pauses, for files
 * that a process still uses while it ends.
 */
export const removeTree = async (path: string, { tries = 1 }: { tries?: number } = {}): Promise<void> => {
  for (let tried = 1; ; tried++) {
    try {
      await runCommand(['rm', '-rf', '--', path], { timeoutMs })
      return
    } catch (error) {
      if (tried >= tries) throw error
      await delay(tried * patienceMs)
    }
  }
}
