// Names and addresses of everything that an instance has in the host's network. By these names, a restarted runner recognizes its
// own slots.
import { parseCidr } from './cidr.ts'

/** A private range of 4096 addresses, `10.x.y.0/20`; `base` is its first address as a number. */
export type Range = { base: number }

export const slotLimit = 4000

export const rangeBits = 20

export const netnsDir = '/run/netns'

export const tableOf = (instance: string) => `alcove_${instance}`

/** A pattern for nft that matches the names of the network interfaces that lead from the host to the instance's sandboxes. */
export const linksOf = (instance: string) => `"al${instance}*"`

export const netnsName = (instance: string, n: number) => `alcove-${instance}-${n}`

export const linkName = (instance: string, n: number) => `al${instance}${n}`

const numberAfter = (prefix: string, name: string) => {
  const digits = name.startsWith(prefix) ? name.slice(prefix.length) : ''
  return /^[1-9][0-9]{0,4}$/.test(digits) ? Number(digits) : undefined
}

export const slotOfNetns = (instance: string, name: string) => numberAfter(`alcove-${instance}-`, name)

export const slotOfLink = (instance: string, name: string) => numberAfter(`al${instance}`, name)

export const toDotted = (address: number) => [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.')

export const gatewayOf = (range: Range) => toDotted(range.base + 1)

export const addressOf = (range: Range, n: number) => toDotted(range.base + 1 + n)

export const slotOfAddress = (range: Range, dotted: string) => {
  const n = (parseCidr(dotted)?.base ?? 0) - range.base - 1
  return n >= 1 && n <= slotLimit ? n : undefined
}

export const rangeText = (range: Range) => `${toDotted(range.base)}/${rangeBits}`

/**
 * Returns the hardware address of one of a slot's two interfaces. Each interface is given the other interface's address, so no ARP
 * is needed.
 */
export const hardwareAddress = (instance: string, n: number, end: 'host' | 'sandbox') =>
  [end === 'host' ? '06' : '02', ...pairs(instance), ...pairs(n.toString(16).padStart(4, '0'))].join(':')

const pairs = (hex: string) => hex.match(/../g) ?? []
