// The cookies that a visitor of a preview has from us, beside those of the server inside. They are for this host alone,
// and where previews share a host, for the paths of this one.
import type { PreviewAddress } from './address.ts'

const authPrefix = 'daytona-sandbox-auth-'
const acceptedPrefix = 'alcove-preview-accepted-'
const authSeconds = 3600
const acceptedSeconds = 86_400
/** A browser has one for a preview; more were not set by us. */
const mostTokens = 4

const isOurs = (name: string) => name.startsWith(authPrefix) || name.startsWith(acceptedPrefix)

const split = (header: string | undefined) =>
  (header ?? '').split(';').flatMap((pair) => {
    const [name = '', ...value] = pair.trim().split('=')
    return name === '' ? [] : [{ name, value: value.join('='), text: pair.trim() }]
  })

/** The one for what the address names comes first: any page below the same domain can set others, as many as it likes. */
export const tokensOf = (header: string | undefined, sandbox: string): string[] => {
  const isOwn = ({ name }: { name: string }) => name === authPrefix + sandbox
  return split(header)
    .filter(({ name, value }) => name.startsWith(authPrefix) && value !== '')
    .sort((one, other) => Number(isOwn(other)) - Number(isOwn(one)))
    .slice(0, mostTokens)
    .map(({ value }) => value)
}

export const hasAccepted = (header: string | undefined, sandboxId: string): boolean =>
  split(header).some(({ name }) => name === acceptedPrefix + sandboxId)

/** What is left for the server inside; `undefined` if that is nothing. */
export const withoutOurs = (header: string): string | undefined =>
  split(header)
    .filter(({ name }) => !isOurs(name))
    .map(({ text }) => text)
    .join('; ') || undefined

const cookie = ({ prefix }: PreviewAddress, name: string, value: string, seconds: number, isSecure: boolean) =>
  `${name}=${value}; Path=${prefix}/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`

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
  // One without a name comes back as its value alone, which may read as a name and a value (RFC 6265bis §5.8.3).
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
