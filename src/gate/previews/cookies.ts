// The cookies that the gate itself sets for a visitor of a preview. They apply only to the preview's host or, on a shared
// host, to its paths.
import { decodedFully } from '../query.ts'
import type { PreviewAddress } from './address.ts'

const authPrefix = 'daytona-sandbox-auth-'
const acceptedPrefix = 'alcove-preview-accepted-'
/** No other host can set a cookie with this prefix (RFC 6265bis §4.1.3.2). Browsers accept it only over TLS. */
const hostPrefix = '__Host-'
const authSeconds = 3600
const acceptedSeconds = 86_400
/** Maximum number of tokens from cookies that the gate tries for a request. Pages of other previews can add such cookies. */
const mostTokens = 4

const plainName = (name: string) => (name.startsWith(hostPrefix) ? name.slice(hostPrefix.length) : name)

/**
 * Whether the gate or the API uses this name for its own cookies. A browser also sends the API's cookies to a preview on the
 * API's host.
 */
const isOurs = (name: string) => /^(?:__host-)?(?:daytona-sandbox-auth-|alcove[-_])/i.test(decodedFully(name))

const split = (header: string | undefined) =>
  (header ?? '').split(';').flatMap((pair) => {
    const [name = '', ...value] = pair.trim().split('=')
    return name === '' ? [] : [{ name, value: value.join('='), text: pair.trim() }]
  })

/**
 * Returns the preview tokens in a request's cookies. Over plain HTTP, the page of any preview on the domain can set such
 * cookies. A cookie with the prefix `__Host-` comes first, because no other host can have set it.
 */
export const tokensOf = (header: string | undefined, sandbox: string): string[] => {
  const names = [hostPrefix + authPrefix + sandbox, authPrefix + sandbox]
  return split(header)
    .filter(({ name, value }) => plainName(name).startsWith(authPrefix) && value !== '')
    .map(({ name, value }) => ({ value, rank: (names.indexOf(name) + names.length + 1) % (names.length + 1) }))
    .sort((one, other) => one.rank - other.rank)
    .slice(0, mostTokens)
    .map(({ value }) => value)
}

/**
 * Whether a cookie says that the visitor has accepted the warning page. If the preview has its own host and uses TLS, the cookie
 * must begin with `__Host-`, because no other host can set such a cookie.
 */
export const hasAccepted = (
  header: string | undefined,
  { prefix }: PreviewAddress,
  sandboxId: string,
  isSecure: boolean,
): boolean => {
  const expected = `${isSecure && prefix === '' ? hostPrefix : ''}${acceptedPrefix}${sandboxId}`
  return split(header).some(({ name }) => name === expected)
}

/**
 * Returns the cookies for the sandbox's server, without cookies of the gate or the API. Undefined if none are left. `isOpen`
 * returns whether the server may see the text of a cookie.
 */
export const withoutOurs = (header: string, isOpen: (text: string) => boolean): string | undefined =>
  split(header)
    .filter(({ name, text }) => !isOurs(name) && isOpen(text))
    .map(({ text }) => text)
    .join('; ') || undefined

/**
 * Writes a cookie of the gate. Over TLS, for a preview with its own host name, the cookie is also sent in frames of other
 * sites, with a separate value for each site (CHIPS).
 */
const cookie = ({ prefix }: PreviewAddress, name: string, value: string, seconds: number, isSecure: boolean) => {
  if (!isSecure) return `${name}=${value}; Path=${prefix}/; Max-Age=${seconds}; HttpOnly; SameSite=Lax`
  // A `__Host-` cookie applies to the whole host, so previews that share a host use a cookie with their path instead.
  if (prefix !== '') return `${name}=${value}; Path=${prefix}/; Max-Age=${seconds}; HttpOnly; SameSite=Lax; Secure`
  return `${hostPrefix}${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=None; Secure; Partitioned`
}

export const authCookie = (address: PreviewAddress, sandboxId: string, token: string, isSecure: boolean) =>
  cookie(address, authPrefix + sandboxId, token, authSeconds, isSecure)

export const acceptedCookie = (address: PreviewAddress, sandboxId: string, isSecure: boolean) =>
  cookie(address, acceptedPrefix + sandboxId, 'true', acceptedSeconds, isSecure)

/**
 * Rewrites a cookie that a server in a sandbox sets, so that the cookie applies to no other preview. Returns `undefined` if the
 * gate or the API has cookies of this name.
 */
export const asVisible = (setCookie: string, prefix: string): string | undefined => {
  const [pair = '', ...attributes] = setCookie.split(';')
  // A browser sends a cookie without a name back as its value only, which may look like `name=value` (RFC 6265bis §5.8.3).
  const [name = ''] = pair.replace(/^[\s=]+/, '').split('=', 1)
  if (isOurs(name.trim())) return undefined
  const kept = attributes.filter((attribute) => !/^\s*domain\s*(?:=|$)/i.test(attribute))
  if (prefix === '') return [pair, ...kept].join(';')
  const path = kept
    .findLast((attribute) => /^\s*path\s*=/i.test(attribute))
    ?.split('=')[1]
    ?.trim()
  const others = kept.filter((attribute) => !/^\s*path\s*(?:=|$)/i.test(attribute))
  return [pair, ...others, ` Path=${prefix}${path?.startsWith('/') ? path : '/'}`].join(';')
}
