// Reads request bodies. A caller may be slow or disappear. Limits how many bodies are read at a time, because each takes memory.
import { Budget } from '#src/kit/budget.ts'
import { Problem } from '#src/problems.ts'
import { type ContextName, prefixOf } from './keys.ts'
import type { ContextLimits } from './limits.ts'
import type { Body } from './store.ts'

export class Taking {
  readonly #limits: ContextLimits
  readonly #running: Budget
  readonly #names = new Budget({})

  constructor(limits: ContextLimits) {
    this.#limits = limits
    this.#running = new Budget({ each: limits.atOnceOfOrganization, all: limits.atOnce })
  }

  isTaking(name: ContextName): boolean {
    return this.#names.has(prefixOf(name))
  }

  async run<T>(name: ContextName, body: Body, work: (pieces: Body) => Promise<T>): Promise<T> {
    const { organizationId } = name
    if (!this.#running.take(organizationId))
      throw new Problem('rate_limited', 'Too many files are being uploaded now. Try again when an upload is finished.')
    this.#names.take(prefixOf(name))
    try {
      return await work(this.#unlessSilent(body))
    } finally {
      this.#running.give(organizationId)
      this.#names.give(prefixOf(name))
    }
  }

  async *#unlessSilent(body: Body): AsyncGenerator<Buffer> {
    const pieces = body[Symbol.asyncIterator]()
    const { silentMs, longestMs } = this.#limits
    const end = performance.now() + longestMs
    try {
      for (;;) {
        const { promise: silence, reject } = Promise.withResolvers<never>()
        const timer = setTimeout(
          () => reject(new Problem('timeout', 'The upload stopped sending data, or was too slow.')),
          Math.min(silentMs, end - performance.now()),
        )
        const piece = await Promise.race([pieces.next(), silence]).finally(() => clearTimeout(timer))
        if (piece.done) return
        yield piece.value
      }
    } finally {
      // The close of the request body is not awaited, because the close may end only after the caller sends another byte.
      void pieces.return?.()?.catch(() => {})
    }
  }
}
