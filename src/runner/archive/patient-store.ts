// Wraps a store so that each call is retried while the store is down. The final error says how often the call was tried.
import { setTimeout as wait } from 'node:timers/promises'
import { ArchiveFailed } from './failed.ts'
import type { ObjectStore } from './store.ts'

/** Pauses between attempts, in milliseconds. Each attempt may take long too, until its timeout. */
const standardWaitsMs = [200, 1_000, 3_000, 8_000]

export const patient = (store: ObjectStore, waitsMs: readonly number[] = standardWaitsMs): ObjectStore => {
  /** Waits before the next attempt. Throws the error if it is not temporary, or if no attempt is left. */
  const beforeAnother = async (error: unknown, tried: number, signal: AbortSignal | undefined) => {
    signal?.throwIfAborted()
    if (!(error instanceof ArchiveFailed) || error.why !== 'store down') throw error
    const waitMs = waitsMs[tried - 1]
    if (waitMs === undefined) {
      throw new ArchiveFailed('store down', `${error.message} Tried ${tried} times.`, { cause: error.cause })
    }
    // The length of the pause is partly random, so that many sandboxes do not retry at the same moment.
    await wait(waitMs * (0.75 + Math.random() / 2), undefined, signal ? { signal } : {}).catch(() => undefined)
    signal?.throwIfAborted()
  }

  const again = async <T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
    for (let tried = 1; ; tried += 1) {
      try {
        return await work()
      } catch (error) {
        await beforeAnother(error, tried, signal)
      }
    }
  }

  return {
    put: (key, content, signal) => again(() => store.put(key, content, signal), signal),
    get: (key, limit, signal) => again(() => store.get(key, limit, signal), signal),
    remove: (key, signal) => again(() => store.remove(key, signal), signal),
    // After a failure, the list is requested again from the beginning, so an object may be listed twice.
    async *list(prefix, signal) {
      for (let tried = 1; ; tried += 1) {
        try {
          return yield* store.list(prefix, signal)
        } catch (error) {
          await beforeAnother(error, tried, signal)
        }
      }
    },
    close: () => store.close(),
  }
}
