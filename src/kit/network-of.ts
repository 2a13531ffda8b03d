// Returns the network that an address belongs to. Callers without a credential share their limits with all callers of
// their network.
import { isIPv4, isIPv6 } from 'node:net'

/** Number of groups of an IPv6 address that name its network. A customer usually gets a whole /64, which is four groups. */
export const networkGroups = 4

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
