// The addresses of one server: where its programs listen, where the programs reach each other, and the URLs for clients.
import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { Complaint } from './complaint.ts'

export type Addresses = {
  /** Address on which control listens, as `host:port`. */
  control: string
  gate: string
  /** The URL at which the server's own programs call control. */
  controlUrl: string
  /** The URL at which the server's own programs call the gate. */
  gateUrl: string
  /** The URL at which clients call control. */
  publicUrl: string
  publicProxyUrl: string
  /** Where the SSH gateway listens, and the URL at which clients reach the SSH gateway. Undefined if it is switched off. */
  ssh?: SshAddress
  /** Where control and the gate listen for hosts that have joined over the network, each as `host:port`. */
  hosts?: HostsAddresses
}

export type HostsAddresses = { control: string; gate: string }

export type SshAddress = { listen: { host: string; port: number }; publicUrl: string }

export const bracketed = (host: string) => (isIPv6(host) ? `[${host}]` : host)

const firstAddressOfMachine = (): string | undefined =>
  Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === 'IPv4' && !address.internal)?.address

const isEverywhereAddress = (host: string) => host === '0.0.0.0' || host === '::'

export const checkHost = (option: string, host: string): void => {
  const isPlain = isIPv6(host) || /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(host)
  if (isPlain && URL.canParse(`http://${bracketed(host)}`)) return
  throw new Complaint(
    `${option} "${host}" is not a host name, such as box.example, or an IP address; give the port with --port`,
  )
}

/**
 * Returns on which addresses control and the gate listen for other machines. `address`: the host name or IP address at which other
 * machines reach this one. Throws an error for the operator if it is invalid or stands for all addresses.
 */
export const hostsAddressesOf = (address: string, port: number): HostsAddresses => {
  checkHost('--hosts', address)
  if (isEverywhereAddress(address)) {
    throw new Complaint(`--hosts must be the address at which other machines reach this machine, not ${address}`)
  }
  return { control: `${bracketed(address)}:${port + 3}`, gate: peersAddressOf(address, port) }
}

/** Returns the address, as `host:port`, on which a gate listens for gates of other machines. */
export const peersAddressOf = (address: string, port: number): string => `${bracketed(address)}:${port + 4}`

/** The URLs for clients if a reverse proxy receives their calls to control and to the gate. */
export type PublicUrls = Pick<Addresses, 'publicUrl' | 'publicProxyUrl'>

const findOrigin = (text: string): string | undefined => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/` ? url.origin : undefined
}

/**
 * Reads a reverse proxy's URLs of control and the gate from the settings. Returns `undefined` if neither is set, and an error text
 * if they are wrong.
 */
export const readPublicUrls = (env: NodeJS.ProcessEnv): PublicUrls | string | undefined => {
  const names = ['ALCOVE_PUBLIC_URL', 'ALCOVE_PROXY_URL'] as const
  const told = names.map((name) => env[name] || undefined)
  if (told.every((text) => text === undefined)) return undefined
  // With only one of the two URLs, clients would reach one program through the reverse proxy with TLS, and the other directly
  // without TLS.
  if (told.includes(undefined)) return `set both ${names.join(' and ')}, or neither`
  const [publicUrl, publicProxyUrl] = told.map((text) => findOrigin(text ?? ''))
  if (publicUrl !== undefined && publicProxyUrl !== undefined) return { publicUrl, publicProxyUrl }
  const wrong = publicUrl === undefined ? names[0] : names[1]
  return `${wrong} must consist of http:// or https://, a host name and optionally a port, such as https://alcove.example.com`
}

/** The settings of the SSH gateway. */
export type SshSettings = {
  /** Where the SSH gateway listens. Default: the host where control and the gate listen, with the gate's port plus 1. */
  listen?: { host: string; port: number } | 'off'
  /** The SSH gateway's URL for clients. Default: the host of the public URLs, and the port where the SSH gateway listens. */
  publicUrl?: string
}

const sshAddressOf = (
  { listen, publicUrl }: SshSettings,
  host: string,
  port: number,
  outside: string,
): SshAddress | undefined => {
  if (listen === 'off') return undefined
  const at = listen ?? { host, port: port + 2 }
  return { listen: at, publicUrl: publicUrl ?? `ssh://${bracketed(outside)}:${at.port}` }
}

/**
 * Returns the addresses of a server. `publicHost`: the name by which clients reach this machine, by default an IP address. Unused
 * if `publicUrls` is given. Throws an error for the operator if `host`, `publicHost` or `hosts` is not a host.
 */
export const addressesOf = (
  host: string,
  port: number,
  publicHost?: string,
  publicUrls?: PublicUrls | undefined,
  sshSettings: SshSettings = {},
  hosts?: string | undefined,
): Addresses => {
  checkHost('--host', host)
  if (publicHost !== undefined) checkHost('--public-host', publicHost)
  const isEverywhere = isEverywhereAddress(host)
  const inside = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const outside = publicHost ?? (isEverywhere ? (firstAddressOfMachine() ?? inside) : host)
  const named = publicUrls === undefined ? outside : new URL(publicUrls.publicUrl).hostname.replace(/^\[|\]$/g, '')
  const ssh = sshAddressOf(sshSettings, host, port, named)
  return {
    control: `${bracketed(host)}:${port}`,
    gate: `${bracketed(host)}:${port + 1}`,
    controlUrl: `http://${bracketed(inside)}:${port}`,
    gateUrl: `http://${bracketed(inside)}:${port + 1}`,
    publicUrl: `http://${bracketed(outside)}:${port}`,
    publicProxyUrl: `http://${bracketed(outside)}:${port + 1}`,
    ...publicUrls,
    ...(ssh && { ssh }),
    ...(hosts !== undefined && { hosts: hostsAddressesOf(hosts, port) }),
  }
}
