// Which address each party uses for the same server.
import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { Complaint } from './complaint.ts'

export type Addresses = {
  /** `host:port` that control binds. */
  control: string
  gate: string
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

const checkHost = (option: string, host: string): void => {
  const isPlain = isIPv6(host) || /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(host)
  if (isPlain && URL.canParse(`http://${bracketed(host)}`)) return
  throw new Complaint(`${option} "${host}" is neither a name, such as box.example, nor an address; ports have --port`)
}

/** What clients call where a reverse proxy is in front of both ports. */
export type PublicUrls = Pick<Addresses, 'publicUrl' | 'publicProxyUrl'>

const findOrigin = (text: string): string | undefined => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/` ? url.origin : undefined
}

/** `undefined` where none are set; a string is what is wrong with them. */
export const readPublicUrls = (env: NodeJS.ProcessEnv): PublicUrls | string | undefined => {
  const names = ['ALCOVE_PUBLIC_URL', 'ALCOVE_PROXY_URL'] as const
  const told = names.map((name) => env[name] || undefined)
  if (told.every((text) => text === undefined)) return undefined
  // A single one would leave clients with a name for TLS and, beside it, an address without.
  if (told.includes(undefined)) return `${names.join(' and ')} are set together, or neither`
  const [publicUrl, publicProxyUrl] = told.map((text) => findOrigin(text ?? ''))
  if (publicUrl !== undefined && publicProxyUrl !== undefined) return { publicUrl, publicProxyUrl }
  const wrong = publicUrl === undefined ? names[0] : names[1]
  return `${wrong} must be http:// or https:// and a name, with a port or without and nothing behind, such as https://alcove.example.com`
}

/**
 * `publicHost` is the name under which clients reach this machine; without it, a guess that is right on one machine.
 * `publicUrls` go before either. Throws a Complaint for what is no host.
 */
export const addressesOf = (
  host: string,
  port: number,
  publicHost?: string,
  publicUrls?: PublicUrls | undefined,
): Addresses => {
  checkHost('--host', host)
  if (publicHost !== undefined) checkHost('--public-host', publicHost)
  const isEverywhere = host === '0.0.0.0' || host === '::'
  const inside = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const outside = publicHost ?? (isEverywhere ? (firstAddressOfMachine() ?? inside) : host)
  return {
    control: `${bracketed(host)}:${port}`,
    gate: `${bracketed(host)}:${port + 1}`,
    controlUrl: `http://${bracketed(inside)}:${port}`,
    publicUrl: `http://${bracketed(outside)}:${port}`,
    publicProxyUrl: `http://${bracketed(outside)}:${port + 1}`,
    ...publicUrls,
  }
}
