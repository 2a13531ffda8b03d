// A server inside a sandbox as the destination of a call. It gets the caller's address and headers, but none of our
// credentials. Its answers can affect only its own preview.
import type { IncomingMessage } from 'node:http'
import { Problem } from '#src/problems.ts'
import type { Access, Credential } from '#src/wire/access.ts'
import type { Destination } from '../destination.ts'
import { crossing, framing, upgrading } from '../headers.ts'
import type { Inside } from '../inside.ts'
import type { PreviewAddress } from './address.ts'
import { asVisible, withoutOurs } from './cookies.ts'
import { findOurs, openProtocols, openQuery, openReferer } from './our-credentials.ts'
import { protocolOf } from './visitor.ts'

const forwarded = ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto', 'x-forwarded-prefix']
const rewritten = new Set([
  'host',
  'cookie',
  'origin',
  'referer',
  'expect',
  'content-length',
  'forwarded',
  'sec-websocket-protocol',
  'x-service-organization-id',
  ...forwarded,
])

/** Headers of answers that would affect every preview on the same host. They are removed if previews share a host. */
const ofWholeHost = new Set(['alt-svc', 'nel', 'report-to', 'service-worker-allowed', 'strict-transport-security'])

/**
 * Headers of answers that are rewritten or removed. `clear-site-data` would clear the cookies of every preview below the
 * same domain.
 */
const neverOut = new Set(['set-cookie', 'location', 'clear-site-data'])

type Names = {
  /** The preview's host name, with the sandbox's id in place of a token. The sandbox's server gets it in `X-Forwarded-Host`. */
  host: string
  prefix: string
  /**
   * The host name that the sandbox's server gets in `Host`: the preview's host name, or `localhost` with the preview's port. In
   * `Origin` and `Referer`, it replaces the preview's host name.
   */
  called: string
  hide: (text: string) => string
}

/**
 * Returns the host names and the path prefix that the sandbox's server may see. A token in the address is a credential, so the
 * sandbox's id replaces it.
 */
const namesOf = (address: PreviewAddress, { sandboxId, openedBy, hostInside }: Access): Names => {
  const { host, prefix, sandbox, port } = address
  const isToken = openedBy === 'signed-preview'
  const hide = (text: string) => (isToken ? text.replaceAll(new RegExp(sandbox, 'gi'), sandboxId) : text)
  const shown = hide(host)
  // Write the path prefix anew, with the sandbox's id. The function `hide` would not find a percent-encoded token in it.
  const shownPrefix = prefix !== '' && isToken ? `/preview/${sandboxId}/${port}` : prefix
  return { host: shown, prefix: shownPrefix, called: hostInside === 'localhost' ? `localhost:${port}` : shown, hide }
}

/**
 * Rewrites a URL from the header `Origin` or `Referer`. If the URL's host is the preview's host, `called` replaces this host. Other
 * URLs stay unchanged.
 */
const asCalled = (url: string | undefined, { host, called }: Names, isSecure: boolean): string | undefined => {
  if (url === undefined || called === host || !URL.canParse(url)) return url
  const { host: pageHost, origin } = new URL(url)
  if (pageHost !== new URL(`${isSecure ? 'https' : 'http'}://${host}`).host) return url
  return `http://${called}${url.slice(origin.length)}`
}

const pairs = (name: string, value: string | undefined) => (value === undefined || value === '' ? [] : [name, value])

const carriesOursIn = ({ address, access, credentials }: Visit) =>
  findOurs(
    access.openedBy === 'signed-preview'
      ? [...credentials, { kind: 'preview-query', token: address.sandbox }]
      : credentials,
    access,
  )

const inward = (visit: Visit, isUpgrade: boolean): string[] => {
  const { request, address, access } = visit
  const { headers, socket } = request
  const names = namesOf(address, access)
  const { host, prefix, called, hide } = names
  const [, port] = /:(\d+)$/.exec(host) ?? []
  const protocol = protocolOf(request)
  const carriesOurs = carriesOursIn(visit)
  const isOpen = (text: string) => !carriesOurs(text)
  const open = (text: string | undefined) => (text !== undefined && isOpen(text) ? text : undefined)
  const origin = asCalled(open(headers.origin && hide(headers.origin)), names, protocol === 'https')
  const referer = openReferer(headers.referer && hide(headers.referer), carriesOurs)
  const isBearerOurs = access.isBearerOurs || access.openedBy === 'bearer'
  let authorizations = 0
  return [
    ...pairs('Host', called),
    ...crossing(request, (name, value) => {
      if (rewritten.has(name) || name.startsWith('x-daytona-')) return false
      if (name !== 'authorization') return isOpen(value) && isOpen(name)
      // Drop a second Authorization header, because the gate has checked only the first one.
      authorizations += 1
      return authorizations === 1 && isOpen(value) && !(isBearerOurs && /^bearer\s/i.test(value))
    }),
    ...pairs('Cookie', headers.cookie === undefined ? undefined : withoutOurs(headers.cookie, isOpen)),
    ...pairs('Origin', origin),
    ...pairs('Referer', asCalled(referer, names, protocol === 'https')),
    ...pairs('Sec-WebSocket-Protocol', openProtocols(request, carriesOurs)),
    ...pairs(
      'X-Forwarded-For',
      [open(headers['x-forwarded-for']?.toString()), socket.remoteAddress].filter(Boolean).join(', '),
    ),
    ...pairs('X-Forwarded-Host', host),
    ...pairs('X-Forwarded-Port', port ?? (protocol === 'https' ? '443' : '80')),
    ...pairs('X-Forwarded-Proto', protocol),
    ...pairs('X-Forwarded-Prefix', prefix),
    ...(isUpgrade ? upgrading(request) : [...framing(request), 'Connection', 'close']),
  ]
}

/** Returns the path and query that the sandbox's server gets, without credentials of Alcove. */
const targetOf = (visit: Visit): string => {
  const { address, access } = visit
  const { hide } = namesOf(address, access)
  const carriesOurs = carriesOursIn(visit)
  const path = hide(address.path)
  if (carriesOurs(path)) throw new Problem('bad_request', 'The path of a preview must not contain a credential.')
  return `${path || '/'}${openQuery(hide(address.query), carriesOurs)}`
}

/**
 * Translates a redirect for the visitor, because the sandbox's server does not know the token in the address. Usually the server
 * does not know the path prefix, either.
 */
const locationOf = (location: string, address: PreviewAddress, access: Access): string => {
  const [, scheme = '', authority, rest = ''] = /^([a-z]+:)?\/\/([^/?#\\]*)(.*)$/is.exec(location) ?? []
  const { host, prefix, called } = namesOf(address, access)
  const outside = (path: string) =>
    address.prefix + (prefix !== '' && path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path)
  if (authority === undefined) return location.startsWith('/') ? outside(location) : location
  if (authority.toLowerCase() === host.toLowerCase()) return `${scheme}//${address.host}${outside(rest)}`
  // The result has no scheme, because the sandbox's server may not know the scheme that the visitor uses.
  return authority.toLowerCase() === called ? `//${address.host}${outside(rest)}` : location
}

/**
 * Headers that give a page an opaque origin. Previews by path share an origin, so a page could otherwise read all its
 * visitor's previews.
 */
const ofNoOrigin = [
  'Content-Security-Policy',
  'sandbox allow-scripts allow-forms allow-modals allow-downloads allow-popups allow-popups-to-escape-sandbox allow-pointer-lock',
]

const outward = (answer: IncomingMessage, address: PreviewAddress, access: Access, ownCookies: readonly string[]) => {
  const plain = crossing(answer, (name) => !neverOut.has(name) && (address.prefix === '' || !ofWholeHost.has(name)))
  const { location, 'set-cookie': cookies = [] } = answer.headers
  const visible = cookies.flatMap((cookie) => asVisible(cookie, address.prefix) ?? [])
  return [
    ...plain,
    ...(address.prefix === '' ? [] : ofNoOrigin),
    ...(location === undefined ? [] : ['Location', locationOf(location, address, access)]),
    ...[...visible, ...ownCookies].flatMap((cookie) => ['Set-Cookie', cookie]),
  ]
}

export type Visit = {
  request: IncomingMessage
  address: PreviewAddress
  access: Access
  credentials: readonly Credential[]
  /** Cookies that the gate adds to the server's answer. */
  ownCookies?: readonly string[]
}

/** Returns the destination for one call to a preview. Throws if a credential cannot be removed from the call. */
export const insideOf = (inside: Pick<Inside, 'request'>, visit: Visit): Destination => {
  const { address, access, ownCookies = [] } = visit
  const { port } = address
  return {
    path: targetOf(visit),
    send: (outgoing) => inside.request(access, port, outgoing),
    inward: (isUpgrade) => inward(visit, isUpgrade),
    outward: (answer) => outward(answer, address, access, ownCookies),
    failure: (cause) =>
      cause instanceof Problem
        ? cause
        : new Problem('sandbox_silent', `The server on port ${port} did not answer this call in HTTP.`, { cause }),
  }
}
