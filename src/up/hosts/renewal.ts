// Renews the certificates of a host: at each start, and then as often as the server says, usually each day. A failure is
// harmless for weeks, so it is said once and tried again.
import { setTimeout as pause } from 'node:timers/promises'

type RenewalParts = {
  /** Gets and writes new certificates. Returns after how many seconds it should be called again. */
  renew: () => Promise<number>
  /** When the current certificates end. Undefined: there are none. */
  endsAt: () => Date | undefined
  say: (line: string) => void
  /** Delays between two tries after a failure. */
  retryMs?: { first: number; longest: number }
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const quietFailures = 2

/** What to do when the certificates have ended. */
export const newTokenRemedy = (runnerId: string): string =>
  `On the server, "alcove runner token ${runnerId}" prints a new token: start this host once with --token`

export class Renewal implements AsyncDisposable {
  readonly #parts: RenewalParts
  readonly #ending = new AbortController()
  readonly #has = Promise.withResolvers<void>()
  readonly #loop: Promise<void>

  constructor(parts: RenewalParts) {
    this.#parts = parts
    // Otherwise, the rejection at the end would end the process if no program waits for certificates.
    this.#has.promise.catch(() => {})
    if (parts.endsAt() !== undefined) this.#has.resolve()
    this.#loop = this.#keepRenewing()
  }

  /** Resolves when there are certificates. Rejects if the renewal is ended before. */
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
        if (failures > 0 && saidAt > 0) say('The certificates of this host are renewed again.')
        failures = 0
        saidAt = 0
        await this.#wait(seconds * 1000)
      } catch (error) {
        failures += 1
        // The server may just be starting again, so the first failures are not said.
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
      this.#leftMs() > 0 ? `They last until ${endsAt.toISOString()}` : `They ended at ${endsAt.toISOString()}`
    return `The certificates of this host could not be renewed: ${message}. ${until}; it tries again each hour.`
  }

  /** Waits by the wall clock, because a machine that was suspended must not wait longer. */
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
    // A request that is on its way is not awaited: what it brings is written whole, or not at all.
    await Promise.race([this.#loop, pause(1000)])
  }
}
