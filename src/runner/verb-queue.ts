// Runs one verb at a time for each sandbox. A slow verb can be aborted for a later verb. A new verb aborts the sandbox's background
// work, such as a save.
import { oneAtATime } from './one-at-a-time.ts'

export class VerbQueue {
  readonly #inLine = oneAtATime()
  /** Abort controllers of slow verbs that are running or queued: stops with a grace period, archives and restores. */
  readonly #slow = new Map<string, Set<AbortController>>()
  /** Abort controllers of background work that is running or queued. */
  readonly #background = new Map<string, Set<AbortController>>()

  /** Queues `work`, which is a verb of the sandbox, and aborts the sandbox's background work. */
  run<T>(sandboxId: string, work: () => Promise<T>): Promise<T> {
    abortAll(this.#background, sandboxId)
    return this.#inLine(sandboxId, work)
  }

  /** Queues `work` for the sandbox. The signal that `work` gets aborts when `cutShort` is called for the sandbox. */
  runCuttable(sandboxId: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    return withController(this.#slow, sandboxId, (signal) => this.run(sandboxId, () => work(signal)))
  }

  /**
   * Runs `work` when no verb of the sandbox is running. The signal that `work` gets aborts as soon as the sandbox has a queued
   * verb.
   */
  runInBackground<T>(sandboxId: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withController(this.#background, sandboxId, (signal) => this.#inLine(sandboxId, () => work(signal)))
  }

  cutShort(sandboxId: string): void {
    abortAll(this.#slow, sandboxId)
  }

  cutAllShort(): void {
    for (const works of [this.#slow, this.#background]) for (const id of works.keys()) abortAll(works, id)
  }
}

type Controllers = Map<string, Set<AbortController>>

const abortAll = (controllers: Controllers, sandboxId: string): void => {
  for (const controller of controllers.get(sandboxId) ?? []) controller.abort()
}

/** Runs `work` with a signal that `abortAll` can abort. */
const withController = async <T>(
  controllers: Controllers,
  sandboxId: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const controller = new AbortController()
  const all = controllers.get(sandboxId) ?? new Set()
  controllers.set(sandboxId, all.add(controller))
  try {
    return await work(controller.signal)
  } finally {
    all.delete(controller)
    if (all.size === 0) controllers.delete(sandboxId)
  }
}
