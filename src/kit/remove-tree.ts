// Removes a directory tree that untrusted programs have written. Its paths may be too long for system calls, but rm(1) enters
// one directory after the other.
import { setTimeout as delay } from 'node:timers/promises'
import { runCommand } from './run-command.ts'

const timeoutMs = 10 * 60_000
const patienceMs = 100

/**
 * Removes the tree. Does nothing if the path does not exist. `tries`: number of attempts; more than one if a process that is
 * ending may still use files in the tree.
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
