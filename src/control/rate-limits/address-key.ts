// What callers without a name are counted by: their address, in a form of which there are not too many.
import { createHmac, randomBytes } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'

/** As many counters as there may be for strangers, however many addresses they come from. */
const slots = 65_536

/** A /64: whoever has one address of IPv6 has 2^64 of them. */
const networkGroups = 4
/** A /48: what one subscriber or tenant is often given. */
export const siteGroups = 3

export const networkOf = (address: string, groupsKept = networkGroups): string => {
  const [bare = ''] = address.split('%')
  if (!isIPv6(bare)) return address
  const mapped = bare.slice(bare.lastIndexOf(':') + 1)
  if (isIPv4(mapped)) return mapped
  const [head = '', tail] = bare.split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length
  const all = [...groups, ...Array<string>(zeros).fill('0'), ...after]
  return `${all
    .slice(0, groupsKept)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/${groupsKept * 16}`
}

/** A slot for each network, by a secret of this process, so that nobody can choose to share one with another. */
export const createAddressKeys = (groupsKept = networkGroups): ((address: string) => string) => {
  const secret = randomBytes(32)
  return (address) => {
    const digest = createHmac('sha256', secret).update(networkOf(address, groupsKept)).digest()
    return String(digest.readUInt32BE(0) % slots)
  }
}
