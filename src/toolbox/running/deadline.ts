// The deadline of a call. The call's command must end when the timeout has passed, or when the caller has disconnected.
import type { FastifyReply } from 'fastify'
import { Problem } from '#src/problems.ts'

/** The longest time that a timer can have, in ms. A longer timeout (over 24 days) is cut to this time. */
const longestMs = 2 ** 31 - 1

export type Deadline = Disposable & { readonly signal: AbortSignal }

/** How long a command may run. 0 seconds: no limit. `isDefault`: the limit is the default, not the caller's. */
export type Limit = { seconds: number; isDefault?: boolean }

const sentenceOf = ({ seconds, isDefault }: Limit): string => {
  const sentence = `Command execution timeout: the command was killed after ${seconds} seconds.`
  return isDefault ? `${sentence} This is the default; give a "timeout" in seconds, or 0 for no limit.` : sentence
}

/**
 * Creates the deadline of a call. The reason of `signal` is the Problem that the caller gets. Without a `reply`, only the timeout
 * ends the call.
 */
export const deadlineOf = (reply: Pick<FastifyReply, 'raw'> | undefined, limit: Limit): Deadline => {
  const controller = new AbortController()
  const timer =
    limit.seconds > 0
      ? setTimeout(
          () => controller.abort(new Problem('execution_timeout', sentenceOf(limit))),
          Math.min(limit.seconds * 1000, longestMs),
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

/** Waits for `work`, but at most until the deadline; after that throws the deadline's Problem. */
export const beforeDeadline = <T>(work: Promise<T>, { signal }: Pick<Deadline, 'signal'>): Promise<T> =>
  new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    const done = (): void => signal.removeEventListener('abort', onAbort)
    work.then(
      (value) => {
        done()
        resolve(value)
      },
      (error) => {
        done()
        reject(error)
      },
    )
  })
