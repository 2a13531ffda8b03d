// Which address each party uses for the same server.
import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'

export type Addresses = {
  /** `host:port` that control binds. */
  control: string
  proxy: string
  /** What our own programs call. */
  controlUrl: string
  /** What clients call. */
  publicUrl: string
  publicProxyUrl: string
}

const bracketed = (host: string) => (isIPv6(host) ? `[${host}]` : host)

const firstAddressOfMachine = (): string | undefined =>
  Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === 'IPv4' && !address.internal)?.address

/** `publicHost` is the name under which clients reach this machine; without it, a guess that is right on one machine. */
export const addressesOf = (host: string, port: number, publicHost?: string): Addresses => {
  const isEverywhere = host === '0.0.0.0' || host === '::'
  const inside = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const outside = publicHost ?? (isEverywhere ? (firstAddressOfMachine() ?? inside) : host)
  return {
    control: `${bracketed(host)}:${port}`,
    proxy: `${bracketed(host)}:${port + 1}`,
    controlUrl: `http://${bracketed(inside)}:${port}`,
    publicUrl: `http://${bracketed(outside)}:${port}`,
    publicProxyUrl: `http://${bracketed(outside)}:${port + 1}`,
  }
}
