// Takes bodies, as many at a time as memory allows, from callers who may be slow or vanish.
import { Problem } from '#src/problems.ts'
import { type ContextName, prefixOf } from './keys.ts'
import type { ContextLimits } from './limits.ts'
import type { Body } from './store.ts'

export class Taking {
  readonly #limits: ContextLimits
  readonly #running = new Map<string, number>()
  #all = 0

  constructor(limits: ContextLimits) {
    this.#limits = limits
  }

  isTaking(name: ContextName): boolean {
    return this.#running.has(prefixOf(name))
  }

  async run<T>(name: ContextName, body: Body, work: (pieces: Body) => Promise<T>): Promise<T> {
    const { organizationId } = name
    const { atOnce, atOnceOfOrganization } = this.#limits
    const owned = this.#running.get(organizationId) ?? 0
    if (this.#all >= atOnce || owned >= atOnceOfOrganization)
      throw new Problem('rate_limited', 'Too many files are being uploaded at this moment.')
    const keys = [organizationId, prefixOf(name)]
    this.#all += 1
    for (const key of keys) this.#running.set(key, (this.#running.get(key) ?? 0) + 1)
    try {
      return await work(this.#unlessSilent(body))
    } finally {
      this.#all -= 1
      for (const key of keys) {
        const left = (this.#running.get(key) ?? 1) - 1
        if (left === 0) this.#running.delete(key)
        else this.#running.set(key, left)
      }
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
          () => reject(new Problem('timeout', 'No byte came for too long.')),
          Math.min(silentMs, end - performance.now()),
        )
        const piece = await Promise.race([pieces.next(), silence]).finally(() => clearTimeout(timer))
        if (piece.done) return
        yield piece.value
      }
    } finally {
      // Not awaited: it may be waiting for a byte.
      void pieces.return?.()?.catch(() => {})
    }
  }
}
