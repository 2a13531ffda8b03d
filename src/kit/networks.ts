// Decides which addresses may be called on behalf of an organization: public ones, and those that the operator allows. An
// unknown IPv6 network is not public.
import { BlockList, isIPv4, isIPv6 } from 'node:net'

export type Networks = Pick<BlockList, 'check'>

const networksOf = (family: 'ipv4' | 'ipv6', cidrs: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const cidr of cidrs) {
    const [address = '', length = ''] = cidr.split('/')
    list.addSubnet(address, Number(length), family)
  }
  return list
}

/**
 * IPv4 networks that are not public: IANA's special-purpose addresses, and internal services of clouds. Firewall rules use this
 * list too.
 */
export const notPublicIpv4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10', // includes Alibaba's metadata service, 100.100.100.200
  '127.0.0.0/8',
  '169.254.0.0/16', // includes the metadata services of most clouds
  '168.63.129.16/32', // Azure's metadata service
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const

const notPublic4 = networksOf('ipv4', notPublicIpv4)

/** Public IPv6 addresses. IPv4-mapped addresses and NAT64 are not among them, because they could lead to private IPv4 addresses. */
const global6 = networksOf('ipv6', ['2000::/3'])
const notPublic6 = networksOf('ipv6', [
  '2001::/23', // Teredo, ORCHID and others with an IPv4 address inside or no owner
  '2001:db8::/32',
  '2002::/16', // 6to4: an IPv4 address inside
  '3fff::/20',
])

export const isPublicAddress = (address: string): boolean => {
  if (isIPv4(address)) return !notPublic4.check(address, 'ipv4')
  // An address with a zone (`%`) is in a local network of this host, so it is not public.
  if (!isIPv6(address) || address.includes('%')) return false
  return global6.check(address, 'ipv6') && !notPublic6.check(address, 'ipv6')
}

export const isWithin = (networks: Networks, address: string): boolean =>
  !address.includes('%') && networks.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')

export const noNetworks: Networks = new BlockList()
export const everyNetwork: Networks = { check: () => true }

/** Reads addresses and CIDRs, separated by commas. Returns `undefined` if an item is neither. */
export const readNetworks = (given: string): Networks | undefined => {
  const list = new BlockList()
  for (const item of given.split(',').map((text) => text.trim())) {
    const [, address = '', length] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(item) ?? []
    const family = isIPv4(address) ? 'ipv4' : isIPv6(address) ? 'ipv6' : undefined
    const longest = family === 'ipv4' ? 32 : 128
    if (family === undefined || Number(length ?? longest) > longest) return undefined
    list.addSubnet(address, Number(length ?? longest), family)
  }
  return list
}

export const openNetworksMeaning = 'IPv4 addresses and networks with commas between, such as 10.1.0.0/16'

/** Returns `given` if it is one IPv4 address or CIDR, else undefined. */
export const readIpv4Network = (given: string): string | undefined => {
  const [, address = '', length = '32'] = /^([0-9.]+)(?:\/(\d{1,2}))?$/.exec(given) ?? []
  return isIPv4(address) && Number(length) <= 32 ? given : undefined
}
