// Decides whether a URL that a user gave may be called, and at which addresses. The call connects to these addresses, so a DNS
// answer that changes after the check has no effect.
import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { isPublicAddress, isWithin, type Networks } from '#src/kit/networks.ts'
import { OutboundError } from './error.ts'

/** Looks up all addresses of a host name. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>

export type Target = { url: URL; addresses: LookupAddress[] }

const longestUrl = 2048

/** Checks a URL when a user gives it, without a DNS look-up. Throws an OutboundError if the URL is refused. */
export const readTargetUrl = (given: string): URL => {
  const url = given.length <= longestUrl && URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === '') {
    throw new OutboundError('url', 'The URL must begin with https:// or http:// and name a host.')
  }
  if (url.username !== '' || url.password !== '')
    throw new OutboundError('url', 'The URL must not contain a user name or password.')
  return url
}

/**
 * Lower ports are reserved for system services. Of these lower ports, control calls only 80 and 443, except in networks that
 * the operator allows.
 */
const firstFreePort = 1024

const isHttpPort = ({ port }: URL) => port === '' || port === '80' || port === '443' || Number(port) >= firstFreePort

/** Returns the host name without the brackets of an IPv6 address: `[::1]` becomes `::1`. */
const hostOf = ({ hostname }: URL) => hostname.replace(/^\[|\]$/g, '')

const listAddresses = async (url: URL, resolve: Resolve): Promise<LookupAddress[]> => {
  const host = hostOf(url)
  const family = isIP(host)
  if (family !== 0) return [{ address: host, family }]
  const addresses = await resolve(host).catch((error: unknown) => {
    throw notPublic(host, error)
  })
  if (addresses.length === 0) throw notPublic(host)
  return addresses
}

/** Unknown host names and refused addresses get the same text: callers must not find out which internal names exist. */
const notPublic = (host: string, cause?: unknown) =>
  new OutboundError('not_public', `The host ${host} is not on the public Internet.`, { cause })

type TargetRules = { allowed: Networks; own: Networks; resolve: Resolve; requireTls: boolean }

/**
 * Resolves the host name of a URL. Throws if one of its addresses is refused, because the call may connect to any of these
 * addresses.
 */
export const resolveTarget = async (given: string, rules: TargetRules): Promise<Target> => {
  const { allowed, own, resolve, requireTls } = rules
  const url = readTargetUrl(given)
  const addresses = await listAddresses(url, resolve)
  if (addresses.every(({ address }) => isWithin(allowed, address))) return { url, addresses }
  const isOpen = (address: string) => isPublicAddress(address) && !isWithin(own, address)
  if (addresses.some(({ address }) => !isOpen(address) && !isWithin(allowed, address))) throw notPublic(hostOf(url))
  if (!isHttpPort(url)) throw new OutboundError('refused', `Alcove does not call port ${url.port}.`)
  if (requireTls && url.protocol !== 'https:') throw new OutboundError('refused', 'The URL must begin with https://.')
  return { url, addresses }
}
