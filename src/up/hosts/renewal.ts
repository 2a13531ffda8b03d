// Renews the certificates of a host at each start and then, usually, once a day. A failed renewal does no harm for weeks, so it is
// printed at most once a day.
import { setTimeout as pause } from 'node:timers/promises'

type RenewalParts = {
  /** Requests new certificates and writes them to files. Returns the number of seconds until the next renewal. */
  renew: () => Promise<number>
  /** Time at which the current certificates expire. Undefined: the host has no certificates. */
  endsAt: () => Date | undefined
  say: (line: string) => void
  /** After failures: the first and the longest delay before the next attempt, in milliseconds. */
  retryMs?: { first: number; longest: number }
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const quietFailures = 2

/** Returns a sentence that says how to get new certificates after the current ones have expired. */
export const newTokenRemedy = (runnerId: string): string =>
  `On the server, "alcove runner token ${runnerId}" prints a new token: start this host once with --token`

export class Renewal implements AsyncDisposable {
  readonly #parts: RenewalParts
  readonly #ending = new AbortController()
  readonly #has = Promise.withResolvers<void>()
  readonly #loop: Promise<void>

  constructor(parts: RenewalParts) {
    this.#parts = parts
    // The disposal may reject this promise while nobody waits for it. Without a handler, the rejection would end the process.
    this.#has.promise.catch(() => {})
    if (parts.endsAt() !== undefined) this.#has.resolve()
    this.#loop = this.#keepRenewing()
  }

  /** Resolves when there are certificates. Rejects if this object is disposed of earlier. */
  get hasCertificates(): Promise<void> {
    return this.#has.promise
  }

  async #keepRenewing() {
    const { renew, say, retryMs: { first, longest } = { first: 60_000, longest: hourMs } } = this.#parts
    let failures = 0
    let saidAt = 0
    while (!this.#ending.signal.aborted) {
      try {
        const seconds = await renew()
        this.#has.resolve()
        if (failures > 0 && saidAt > 0) say('The certificates of this host were renewed.')
        failures = 0
        saidAt = 0
        await this.#wait(seconds * 1000)
      } catch (error) {
        failures += 1
        // The server may just be restarting, so the first failures are not printed.
        if (failures > quietFailures && (saidAt === 0 || Date.now() - saidAt >= dayMs)) {
          say(this.#complain(error as Error))
          saidAt = Date.now()
        }
        await this.#wait(Math.min(first * 2 ** (failures - 1), longest))
      }
    }
  }

  #leftMs(): number {
    return (this.#parts.endsAt()?.getTime() ?? 0) - Date.now()
  }

  #complain({ message }: Error): string {
    const endsAt = this.#parts.endsAt()
    if (endsAt === undefined) return `This host has no certificates yet, and tries again: ${message}.`
    const until =
      this.#leftMs() > 0 ? `They are valid until ${endsAt.toISOString()}` : `They expired at ${endsAt.toISOString()}`
    return `The certificates of this host could not be renewed: ${message}. ${until}; the host tries again each hour.`
  }

  /** Waits for `ms` by the wall clock, so that time in which the machine was suspended counts too. */
  async #wait(ms: number) {
    const until = Date.now() + ms
    const { signal } = this.#ending
    while (!signal.aborted && Date.now() < until) {
      await pause(Math.min(until - Date.now(), hourMs), undefined, { signal, ref: false }).catch(() => {})
    }
  }

  async [Symbol.asyncDispose]() {
    this.#ending.abort()
    this.#has.reject(new Error('the program that asks for certificates is ending'))
    // Wait at most 1 s for a pending request. A process that ends earlier still leaves no half-written certificates.
    await Promise.race([this.#loop, pause(1000)])
  }
}
