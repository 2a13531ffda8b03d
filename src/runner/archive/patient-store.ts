// Retries calls to a store that is down for a while, and then throws a single error.
import { setTimeout as wait } from 'node:timers/promises'
import { ArchiveFailed } from './failed.ts'
import type { ObjectStore } from './store.ts'

/** Pauses between the attempts. With the timeout of each attempt, the error is thrown within minutes if the store stays down. */
const standardWaitsMs = [200, 1_000, 3_000, 8_000]

export const patient = (store: ObjectStore, waitsMs: readonly number[] = standardWaitsMs): ObjectStore => {
  /** Returns after a pause if a retry may succeed, otherwise throws the final error. */
  const beforeAnother = async (error: unknown, tried: number, signal: AbortSignal | undefined) => {
    signal?.throwIfAborted()
    if (!(error instanceof ArchiveFailed) || error.why !== 'store down') throw error
    const waitMs = waitsMs[tried - 1]
    if (waitMs === undefined) {
      throw new ArchiveFailed('store down', `${error.message} Tried ${tried} times.`, { cause: error.cause })
    }
    // The pause is partly random, so that many sandboxes do not retry at the same moment.
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
    // If a list breaks off, it is requested again from the beginning. So an object may be listed twice.
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
