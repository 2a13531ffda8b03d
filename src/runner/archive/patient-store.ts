// A store that is asked again for a while when it is down, and then says so once.
import { setTimeout as wait } from 'node:timers/promises'
import { ArchiveFailed } from './failed.ts'
import type { ObjectStore } from './store.ts'

/** Before each further try. With what a try itself may take, a dead store is given up on within minutes. */
const standardWaitsMs = [200, 1_000, 3_000, 8_000]

export const patient = (store: ObjectStore, waitsMs: readonly number[] = standardWaitsMs): ObjectStore => {
  /** Returns if it is worth another try, after a while; throws what is to be said if not. */
  const beforeAnother = async (error: unknown, tried: number, signal: AbortSignal | undefined) => {
    signal?.throwIfAborted()
    if (!(error instanceof ArchiveFailed) || error.why !== 'store down') throw error
    const waitMs = waitsMs[tried - 1]
    if (waitMs === undefined) {
      throw new ArchiveFailed('store down', `${error.message} Tried ${tried} times.`, { cause: error.cause })
    }
    // Some of it by chance, so that many sandboxes do not come back in one wave.
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
    // A list that breaks off is begun again.
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
