// Lists the next hops of this host: gateways, and networks that this host reaches without a gateway. Reads the routes, because
// a gateway may lie outside the networks of the interfaces. Example: the gateway of a host with a /32 address.
import { closeSync, openSync, readSync } from 'node:fs'

export type NextNetwork = { address: string; bits: number }

/** Maximum bytes that are read from a file of routes. A router may have many routes, but its default route is among the first. */
const mostRead = 256 * 1024

const readBeginning = (path: string): string => {
  try {
    const file = openSync(path, 'r')
    try {
      const buffer = Buffer.alloc(mostRead)
      let length = 0
      for (let read = -1; read !== 0 && length < mostRead; length += read)
        read = readSync(file, buffer, length, mostRead - length, null)
      return buffer.toString('latin1', 0, length)
    } finally {
      closeSync(file)
    }
  } catch {
    // A kernel without IPv6 has no file /proc/net/ipv6_route. Then there are no IPv6 routes.
    return ''
  }
}

/** Whether a route is used: its flags (linux/route.h) contain "up" and do not contain "reject". */
const isUsed = (flags: number) => (flags & 0x1) !== 0 && (flags & 0x200) === 0

const bytesOf = (hex: string) => hex.match(/../g)?.map((byte) => Number.parseInt(byte, 16)) ?? []

/**
 * Converts a hex text to an IPv4 address. `010200C0` is 192.0.2.1: the kernel writes the bytes in the order of a
 * little-endian machine.
 */
const ipv4Of = (hex: string) => bytesOf(hex).reverse().join('.')

const ipv6Of = (hex: string) => hex.match(/.{4}/g)?.join(':') ?? ''

const countBits = (hex: string) =>
  bytesOf(hex).reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0)

/** Reads the IPv4 routes. `text` is the content of /proc/net/route. */
export const nextIpv4 = (text: string): NextNetwork[] =>
  text.split('\n').flatMap((line) => {
    const [, destination = '', gateway = '', flags = '', , , , mask = ''] = line.split('\t').map((word) => word.trim())
    if (!/^[\dA-F]{8}$/.test(destination) || !/^[\dA-F]{8}$/.test(gateway) || !isUsed(Number.parseInt(flags, 16)))
      return []
    return gateway === '00000000'
      ? [{ address: ipv4Of(destination), bits: countBits(mask) }]
      : [{ address: ipv4Of(gateway), bits: 32 }]
  })

/** Reads the IPv6 routes. `text` is the content of /proc/net/ipv6_route. */
export const nextIpv6 = (text: string): NextNetwork[] =>
  text.split('\n').flatMap((line) => {
    const [destination = '', bits = '', , , gateway = '', , , , flags = ''] = line.split(/ +/)
    if (!/^[\da-f]{32}$/.test(destination) || !/^[\da-f]{32}$/.test(gateway) || !isUsed(Number.parseInt(flags, 16)))
      return []
    return /^0+$/.test(gateway)
      ? [{ address: ipv6Of(destination), bits: Number.parseInt(bits, 16) }]
      : [{ address: ipv6Of(gateway), bits: 128 }]
  })

/** Reads /proc/self, because control may not read the entries of other processes. */
export const readNextNetworks = (): NextNetwork[] => [
  ...nextIpv4(readBeginning('/proc/self/net/route')),
  ...nextIpv6(readBeginning('/proc/self/net/ipv6_route')),
]
