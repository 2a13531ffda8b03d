// The keys of the rate counters for unknown callers. A key is a slot number: addresses are mapped to a limited number
// of slots.
import { createHmac } from 'node:crypto'
import { networkGroups, networkOf } from '#src/kit/network-of.ts'

/** Number of counters for unknown callers, however many addresses they use. */
const slots = 65_536

/** Number of groups of an IPv6 address that name a site: a /48, which a subscriber or tenant often gets. */
export const siteGroups = 3

/**
 * Maps each network to a slot by a secret. Without the secret, nobody can choose addresses that share the slot of
 * somebody else. All control processes have the same secret, because they share their counters.
 */
export const createAddressKeys = (secret: Buffer, groupsKept = networkGroups): ((address: string) => string) => {
  return (address) => {
    const digest = createHmac('sha256', secret).update(networkOf(address, groupsKept)).digest()
    return String(digest.readUInt32BE(0) % slots)
  }
}
