// The addresses opened for one slot, each with its name and its earliest closing time. The kernel keeps an address open longer
// while a connection uses it. When a list of domains becomes shorter, this record tells which addresses stay open.
import { isListed } from './dns/domains.ts'

/** Maximum number of addresses that DNS answers may keep open for one slot. */
const openLimit = 1024

type Opening = { name: string; until: number }

export class OpenedAddresses {
  readonly #byAddress = new Map<string, Opening>()

  /** Whether all these addresses are open until the time `until` or longer. */
  has(addresses: readonly string[], until: number): boolean {
    return addresses.every((address) => (this.#byAddress.get(address)?.until ?? 0) >= until)
  }

  /** Whether there is room for these addresses. Expired addresses are dropped if necessary. */
  hasRoomFor(addresses: readonly string[], now: number): boolean {
    const more = addresses.filter((address) => !this.#byAddress.has(address)).length
    if (this.#byAddress.size + more <= openLimit) return true
    for (const [address, { until }] of this.#byAddress) if (until <= now) this.#byAddress.delete(address)
    return this.#byAddress.size + more <= openLimit
  }

  add(addresses: readonly string[], name: string, until: number): void {
    for (const address of addresses) this.#byAddress.set(address, { name, until })
  }

  /** Drops addresses whose names are not in `domains`. */
  keepOnly(domains: readonly string[]): void {
    for (const [address, { name }] of this.#byAddress) if (!isListed(domains, name)) this.#byAddress.delete(address)
  }

  knows(address: string): boolean {
    return this.#byAddress.has(address)
  }

  /** Yields addresses that have not expired, with the milliseconds left. */
  *live(now: number): Generator<readonly [address: string, leftMs: number]> {
    for (const [address, { until }] of this.#byAddress) if (until > now) yield [address, until - now]
  }
}
