// What callers without a name are counted by: their address, in a form of which there are not too many.
import { createHmac, randomBytes } from 'node:crypto'
import { networkGroups, networkOf } from '#src/kit/network-of.ts'

/** Most counters for strangers, however many addresses they come from. */
const slots = 65_536

/** A /48: what one subscriber or tenant is often given. */
export const siteGroups = 3

/** A slot for each network, by a secret of this process, so that nobody can choose to share one with another. */
export const createAddressKeys = (groupsKept = networkGroups): ((address: string) => string) => {
  const secret = randomBytes(32)
  return (address) => {
    const digest = createHmac('sha256', secret).update(networkOf(address, groupsKept)).digest()
    return String(digest.readUInt32BE(0) % slots)
  }
}
