// Records the addresses that DNS answers have opened for one slot, each with its DNS name and end time. If the slot's domains
// change, the record shows which addresses may stay open. While a connection uses an address, the kernel keeps the address open
// after its end time.
import { isListed } from './dns/domains.ts'

/** Maximum number of addresses that DNS answers may keep open for one slot. */
const openLimit = 1024

type Opening = { name: string; until: number }

export class OpenedAddresses {
  readonly #byAddress = new Map<string, Opening>()

  /** Whether all these addresses stay open at least until the time `until`. */
  has(addresses: readonly string[], until: number): boolean {
    return addresses.every((address) => (this.#byAddress.get(address)?.until ?? 0) >= until)
  }

  /** Whether these addresses can be added without exceeding the limit. If necessary, expired addresses are removed. */
  hasRoomFor(addresses: readonly string[], now: number): boolean {
    const more = addresses.filter((address) => !this.#byAddress.has(address)).length
    if (this.#byAddress.size + more <= openLimit) return true
    for (const [address, { until }] of this.#byAddress) if (until <= now) this.#byAddress.delete(address)
    return this.#byAddress.size + more <= openLimit
  }

  add(addresses: readonly string[], name: string, until: number): void {
    for (const address of addresses) this.#byAddress.set(address, { name, until })
  }

  /** Removes the addresses whose names the list `domains` does not allow. */
  keepOnly(domains: readonly string[]): void {
    for (const [address, { name }] of this.#byAddress) if (!isListed(domains, name)) this.#byAddress.delete(address)
  }

  knows(address: string): boolean {
    return this.#byAddress.has(address)
  }

  /** Yields the addresses that have not expired, each with its remaining time in milliseconds. */
  *live(now: number): Generator<readonly [address: string, leftMs: number]> {
    for (const [address, { until }] of this.#byAddress) if (until > now) yield [address, until - now]
  }
}
