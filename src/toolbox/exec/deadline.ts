// When a call must end, whatever its command does: its timeout has passed, or nobody waits for the answer any more.
import type { FastifyReply } from 'fastify'
import { Problem } from '#src/problems.ts'

/** The longest that a timer can wait; a longer timeout (over 24 days) is as good as this one. */
const longestMs = 2 ** 31 - 1

export type Deadline = Disposable & { readonly signal: AbortSignal }

/** `timeoutSeconds` 0 means none; without a reply nobody can hang up. The signal's reason is the Problem to answer with. */
export const deadlineOf = (reply: Pick<FastifyReply, 'raw'> | undefined, timeoutSeconds: number): Deadline => {
  const controller = new AbortController()
  const sentence = `The command was killed: its timeout of ${timeoutSeconds} seconds has passed.`
  const timer =
    timeoutSeconds > 0
      ? setTimeout(
          () => controller.abort(new Problem('execution_timeout', sentence)),
          Math.min(timeoutSeconds * 1000, longestMs),
        )
      : undefined
  const onClose = () => controller.abort(new Problem('gone', 'The caller has hung up.'))
  if (reply?.raw.destroyed) onClose()
  reply?.raw.once('close', onClose)
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      clearTimeout(timer)
      reply?.raw.off('close', onClose)
    },
  }
}

/** Waits for `work` no longer than the deadline; throws its reason when that comes first. */
export const beforeDeadline = <T>(work: Promise<T>, { signal }: Pick<Deadline, 'signal'>): Promise<T> =>
  new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
