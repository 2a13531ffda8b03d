// While a call is open, its sandbox counts as used, and its caller must still be allowed to use it.
import { Problem } from '#src/problems.ts'
import type { AccessQuestion } from '#src/wire/access.ts'
import type { AccessDesk } from './access.ts'

const presenceMs = 50_000

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
  let isAsking = false
  const ask = async () => {
    if (isAsking) return
    isAsking = true
    try {
      await access.askAnew(question)
    } catch (error) {
      if (error instanceof Problem && ends.has(error.code)) onRefused()
    } finally {
      isAsking = false
    }
  }
  const timer = setInterval(ask, everyMs).unref()
  return () => clearInterval(timer)
}
