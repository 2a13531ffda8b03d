// Who comes to a preview: what they bring, and whether a person sits in front of it.
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { AccessQuestion, Credential } from '#src/wire/access.ts'
import { countsAsActivity, credentialsOf } from '../credential.ts'
import type { PreviewAddress } from './address.ts'
import { tokensOf } from './cookies.ts'

/** A browser that opens a page: what it gets is read by a person, and redirects are followed with cookies. */
export const isNavigation = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  /\btext\/html\b/i.test(headers.accept ?? '') &&
  [undefined, 'navigate'].includes(headers['sec-fetch-mode'] as string | undefined)

/** The same by any method, such as a form that another site sends for its visitor. */
export const isForPerson = ({ headers }: IncomingMessage): boolean => {
  const mode = headers['sec-fetch-mode']
  return mode === 'navigate' || (mode === undefined && /\btext\/html\b/i.test(headers.accept ?? ''))
}

export const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined

/** How the caller reached us, or whoever ends TLS in front of us. */
export const protocolOf = ({ headers, socket }: IncomingMessage): 'http' | 'https' => {
  const said = String(headers['x-forwarded-proto'] ?? '')
    .split(',')[0]!
    .trim()
    .toLowerCase()
  if (said === 'http' || said === 'https') return said
  return (socket as Partial<TLSSocket>).encrypted ? 'https' : 'http'
}

/** By its name alone, as cookies go, and as a reverse proxy may leave out the port. */
const hostnameOf = (url: string) => (URL.canParse(url) ? new URL(url).hostname : '')

/** Whether a page of this preview, or of another port of the same sandbox, is there. */
const isOfSandbox = (url: string, { host, prefix }: PreviewAddress): boolean => {
  const sandboxIn = (hostname: string) => (prefix === '' ? hostname.replace(/^\d+-/, '') : hostname)
  const [from, here] = [hostnameOf(url), hostnameOf(`http://${host}`)]
  return from !== '' && sandboxIn(from) === sandboxIn(here)
}

/**
 * Whether a cookie speaks for its visitor. To a browser all previews below one domain are one site, so it sends the cookie also
 * with what a page of another sandbox does, and lets that page read what comes over a WebSocket. Links may come from anywhere.
 */
const isOfVisitor = ({ method, headers }: IncomingMessage, address: PreviewAddress): boolean => {
  const { origin, referer, 'sec-fetch-site': site, 'sec-fetch-mode': mode } = headers
  if (site === 'same-origin' || site === 'none') return true
  const from = origin ?? (site === undefined ? undefined : referer)
  if (from !== undefined && isOfSandbox(from, address)) return true
  const isLink = site === undefined || (mode === 'navigate' && (method === 'GET' || method === 'HEAD'))
  return origin === undefined && isLink
}

const cookiesOf = (request: IncomingMessage, address: PreviewAddress): Credential[] =>
  isOfVisitor(request, address)
    ? tokensOf(request.headers.cookie, address.sandbox).map((token) => ({ kind: 'preview-cookie', token }))
    : []

export const questionOf = (request: IncomingMessage, address: PreviewAddress): AccessQuestion => ({
  sandboxIdOrName: address.sandbox,
  credentials: [...credentialsOf(request.headers, address.queryToken), ...cookiesOf(request, address)],
  port: address.port,
  countsAsActivity: countsAsActivity(request.headers),
})
