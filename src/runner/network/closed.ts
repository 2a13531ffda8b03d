// Addresses that no sandbox can reach, whatever its network policy allows.
import { notPublicIpv4 } from '#src/kit/networks.ts'
import { type Cidr, overlap, parseCidr } from './cidr.ts'
import { type Range, rangeBits } from './names.ts'

/** All IPv4 addresses that are not public. */
export const closedRanges = notPublicIpv4

type Closed = readonly (typeof notPublicIpv4)[number][]

/**
 * Networks that are closed to sandboxes on every host, such as loopback and link-local. DNS resolvers in these networks are not
 * used for sandboxes (resolvers.ts).
 */
export const ofNoHost = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const satisfies Closed

/**
 * Networks that stay closed even if the operator opens a larger network. 168.63.129.16 serves Azure's metadata, as 169.254.169.254
 * does in other clouds.
 */
export const neverOpened = [...ofNoHost, '168.63.129.16/32'] as const satisfies Closed

const blocksOf = (texts: readonly string[]) => texts.map(parseCidr).filter((block) => block !== undefined)

type Reachable = { range: Range; opened: readonly string[]; ofHost: readonly string[] }

/**
 * Whether DNS answers may contain this address. In addition, the firewall checks every packet: it blocks the host's own addresses
 * even in networks that the operator has opened.
 */
export const isOpenable = (text: string, { range, opened, ofHost }: Reachable): boolean => {
  const address = parseCidr(text)
  if (address?.bits !== 32) return false
  const isIn = (blocks: readonly Cidr[]) => blocks.some((block) => overlap(block, address))
  if (isIn([...blocksOf(neverOpened), { base: range.base, bits: rangeBits }])) return false
  return isIn(blocksOf(opened)) || !isIn([...blocksOf(closedRanges), ...blocksOf(ofHost)])
}
