// Which addresses the names of one slot have opened, by which name and until when at least: the kernel may keep one longer,
// while a conversation with it goes on. It is what a list that gets shorter is judged by.
import { isListed } from './dns/domains.ts'

/** At most so many addresses are open for one slot at a time because a name led to them. */
const openLimit = 1024

type Opening = { name: string; until: number }

export class Opened {
  readonly #byAddress = new Map<string, Opening>()

  /** Whether all these addresses stay open until that time already. */
  has(addresses: readonly string[], until: number): boolean {
    return addresses.every((address) => (this.#byAddress.get(address)?.until ?? 0) >= until)
  }

  /** Whether there is room for these addresses too. If need be, forgets addresses whose time is over. */
  hasRoomFor(addresses: readonly string[], now: number): boolean {
    const more = addresses.filter((address) => !this.#byAddress.has(address)).length
    if (this.#byAddress.size + more <= openLimit) return true
    for (const [address, { until }] of this.#byAddress) if (until <= now) this.#byAddress.delete(address)
    return this.#byAddress.size + more <= openLimit
  }

  add(addresses: readonly string[], name: string, until: number): void {
    for (const address of addresses) this.#byAddress.set(address, { name, until })
  }

  /** Forgets what these domains do not list. */
  keepOnly(domains: readonly string[]): void {
    for (const [address, { name }] of this.#byAddress) if (!isListed(domains, name)) this.#byAddress.delete(address)
  }

  knows(address: string): boolean {
    return this.#byAddress.has(address)
  }

  /** Addresses whose time is not over, with the milliseconds that are left. */
  *live(now: number): Generator<readonly [address: string, leftMs: number]> {
    for (const [address, { until }] of this.#byAddress) if (until > now) yield [address, until - now]
  }
}
