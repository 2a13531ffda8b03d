// While a call is open, its sandbox counts as used, and its caller must still be allowed to use it.
import { Problem } from '#src/problems.ts'
import type { AccessQuestion } from '#src/wire/access.ts'
import type { AccessDesk } from './access.ts'

/** Short enough that the shortest interval (a minute) never passes, whatever is kept of answers and writes. */
const presenceMs = 20_000
/** After control could not be asked. */
const againMs = 3_000

const ends = new Set(['unauthorized', 'forbidden', 'not_found'])

/**
 * Asks control anew from time to time, which refreshes the sandbox's activity. `onRefused` runs when the answer is no;
 * that control cannot be reached is no such answer. Returns what stops it.
 */
export const keepPresent = (
  access: AccessDesk,
  question: AccessQuestion,
  onRefused: () => void,
  everyMs = presenceMs,
): (() => void) => {
  let isStopped = false
  let timer: NodeJS.Timeout
  const askIn = (milliseconds: number) => {
    timer = setTimeout(async () => {
      const isHeard = await ask()
      if (!isStopped) askIn(isHeard ? everyMs : Math.min(againMs, everyMs))
    }, milliseconds).unref()
  }
  const ask = async (): Promise<boolean> => {
    try {
      await access.askAnew(question)
      return true
    } catch (error) {
      const isRefused = error instanceof Problem && ends.has(error.code)
      if (isRefused && !isStopped) onRefused()
      return isRefused
    }
  }
  askIn(everyMs)
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}
