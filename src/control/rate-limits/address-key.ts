// Maps the network of an unknown caller to one of 65,536 counters. Several networks may share a counter.
import { createHmac } from 'node:crypto'
import { networkGroups, networkOf } from '#src/kit/network-of.ts'

/** Number of counters for unknown callers, however many addresses they use. */
const slots = 65_536

/** Number of 16-bit groups of an IPv6 address that identify a site: a /48, which a subscriber often has. */
export const siteGroups = 3

/**
 * Returns a function that maps an IP address to the number of a counter. The function uses a hash with a secret key, so nobody
 * can find out which networks share a counter. All control processes have the same key.
 */
export const createAddressKeys = (secret: Buffer, groupsKept = networkGroups): ((address: string) => string) => {
  return (address) => {
    const digest = createHmac('sha256', secret).update(networkOf(address, groupsKept)).digest()
    return String(digest.readUInt32BE(0) % slots)
  }
}
