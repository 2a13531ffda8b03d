// Removing what others have written: a path below it may be longer than a path may be, and then nothing that names it by its
// whole path can (ENAMETOOLONG). rm(1) walks by directory.
import { setTimeout as delay } from 'node:timers/promises'
import { runCommand } from './run-command.ts'

const timeoutMs = 10 * 60_000
const patienceMs = 100

/** Fine when it is gone already. With `tries` it waits ever longer in between, for what somebody who has just ended holds. */
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
