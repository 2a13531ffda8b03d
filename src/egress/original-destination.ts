// Finds where a connection was going before the firewall redirected it. Node has no function for this, so this file calls
// the C library.
import { dlopen } from 'node:ffi'
import type { Socket } from 'node:net'

export type Destination = { address: string; port: number }

/** Constants of linux/netfilter_ipv4.h and of the C library. */
const ipProtocol = 0
const originalDestination = 80
const inet = 2
const addressBytes = 16

const { functions } = dlopen(null, {
  getsockopt: { arguments: ['int32', 'int32', 'int32', 'buffer', 'buffer'], return: 'int32' },
})
const getsockopt = functions['getsockopt'] as (...given: unknown[]) => number

/** Returns where a redirected connection was going. Undefined if the connection was not redirected, or has ended. */
export const originalDestinationOf = (socket: Socket): Destination | undefined => {
  const fd = (socket as unknown as { _handle?: { fd?: number } })._handle?.fd
  if (fd === undefined || fd < 0) return undefined
  const found = Buffer.alloc(addressBytes)
  const length = Buffer.alloc(4)
  length.writeInt32LE(addressBytes)
  if (getsockopt(fd, ipProtocol, originalDestination, found, length) !== 0) return undefined
  if (found.readUInt16LE(0) !== inet) return undefined
  return { port: found.readUInt16BE(2), address: found.subarray(4, 8).join('.') }
}
