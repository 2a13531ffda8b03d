// Which addresses no sandbox reaches, whatever its policy says.
import { type Cidr, overlap, parseCidr } from './cidr.ts'
import { type Range, rangeBits } from './names.ts'

/** Azure's own services to its machines, among them what others have at 169.254.169.254. */
const azure = '168.63.129.16/32'

/** Private, shared, loopback, link-local, multicast and reserved, and where clouds tell a machine about itself. */
export const closedRanges = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10', // with Alibaba's 100.100.100.200
  '127.0.0.0/8',
  azure,
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const

/** These stay closed even where the operator opens a private range that holds them. */
export const neverOpened = ['0.0.0.0/8', '127.0.0.0/8', azure, '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4'] as const

const blocksOf = (texts: readonly string[]) => texts.map(parseCidr).filter((block) => block !== undefined)

/**
 * Whether a single address may ever be opened. The rules decide anew for every packet and also know the host's own
 * addresses; this is so that what a name resolves to is not even told when it leads to a closed place.
 */
export const isOpenable = (text: string, { range, opened }: { range: Range; opened: readonly string[] }): boolean => {
  const address = parseCidr(text)
  if (address?.bits !== 32) return false
  const isIn = (blocks: readonly Cidr[]) => blocks.some((block) => overlap(block, address))
  if (isIn([...blocksOf(neverOpened), { base: range.base, bits: rangeBits }])) return false
  return isIn(blocksOf(opened)) || !isIn(blocksOf(closedRanges))
}
