// While a call is open, keeps its sandbox from being stopped as idle, and regularly checks the caller's access again.
import { Problem } from '#src/problems.ts'
import type { AccessQuestion } from '#src/wire/access.ts'
import type { AccessDesk } from './access.ts'

/**
 * Milliseconds until the gate asks control again about an open call. Each question may count as activity. Must be much shorter
 * than the shortest auto-stop (a minute), because control records activity with a delay.
 */
const presenceMs = 20_000
/**
 * Milliseconds until the gate asks control again after a failed question. The answers 401, 403 and 404 are no failures: then the
 * gate ends the call that the question is about.
 */
const againMs = 3_000

const ends = new Set(['unauthorized', 'forbidden', 'not_found'])

/**
 * Asks control at intervals whether an open call is still allowed. Control may also record each question as activity. `onRefused`
 * runs if control answers 401, 403 or 404, but not after other errors. Returns a function that stops the questions.
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
