// The cookies that a visitor of a preview has from us, beside those of the server inside. They are for this host alone,
// and where previews share a host, for the paths of this one.
import { decodedFully } from '../query.ts'
import type { PreviewAddress } from './address.ts'

const authPrefix = 'daytona-sandbox-auth-'
const acceptedPrefix = 'alcove-preview-accepted-'
/** No other host can set a cookie whose name begins so (RFC 6265bis §4.1.3.2). Browsers take it over TLS only. */
const hostPrefix = '__Host-'
const authSeconds = 3600
const acceptedSeconds = 86_400
/** A browser has one for a preview; more were not set by us. */
const mostTokens = 4

const plainName = (name: string) => (name.startsWith(hostPrefix) ? name.slice(hostPrefix.length) : name)

/** Cookies know no ports: by path a preview is sent those of the API's host too, where that is the same. */
const isOurs = (name: string) => /^(?:__host-)?(?:daytona-sandbox-auth-|alcove[-_])/i.test(decodedFully(name))

const split = (header: string | undefined) =>
  (header ?? '').split(';').flatMap((pair) => {
    const [name = '', ...value] = pair.trim().split('=')
    return name === '' ? [] : [{ name, value: value.join('='), text: pair.trim() }]
  })

/**
 * Tokens for what the address names. One that no other host could have set comes first: over plain HTTP any page below the same
 * domain can set others, as many as it likes.
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

/** Over TLS only by the cookie that no other host could have set. */
export const hasAccepted = (
  header: string | undefined,
  { prefix }: PreviewAddress,
  sandboxId: string,
  isSecure: boolean,
): boolean => {
  const expected = `${isSecure && prefix === '' ? hostPrefix : ''}${acceptedPrefix}${sandboxId}`
  return split(header).some(({ name }) => name === expected)
}

/** What is left for the server inside; `undefined` if that is nothing. `isOpen`: its text may be seen there. */
export const withoutOurs = (header: string, isOpen: (text: string) => boolean): string | undefined =>
  split(header)
    .filter(({ name, text }) => !isOurs(name) && isOpen(text))
    .map(({ text }) => text)
    .join('; ') || undefined

/**
 * Over TLS the cookie is sent in a frame of another site too, and is then another one for each such site (CHIPS). Over plain
 * HTTP browsers know none of that, localhost included.
 */
const cookie = ({ prefix }: PreviewAddress, name: string, value: string, seconds: number, isSecure: boolean) => {
  if (!isSecure) return `${name}=${value}; Path=${prefix}/; Max-Age=${seconds}; HttpOnly; SameSite=Lax`
  // A cookie with the prefix is for the whole host: previews that share one have it below their path instead.
  if (prefix !== '') return `${name}=${value}; Path=${prefix}/; Max-Age=${seconds}; HttpOnly; SameSite=Lax; Secure`
  return `${hostPrefix}${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=None; Secure; Partitioned`
}

export const authCookie = (address: PreviewAddress, sandboxId: string, token: string, isSecure: boolean) =>
  cookie(address, authPrefix + sandboxId, token, authSeconds, isSecure)

export const acceptedCookie = (address: PreviewAddress, sandboxId: string, isSecure: boolean) =>
  cookie(address, acceptedPrefix + sandboxId, 'true', acceptedSeconds, isSecure)

/**
 * A cookie as a server inside sets it, as it may go out: for no other host, where previews share a host for no other
 * path, and not in our name. `undefined`: not at all.
 */
export const asVisible = (setCookie: string, prefix: string): string | undefined => {
  const [pair = '', ...attributes] = setCookie.split(';')
  // A cookie without a name comes back as its value alone, which may read as a name and a value (RFC 6265bis §5.8.3).
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
