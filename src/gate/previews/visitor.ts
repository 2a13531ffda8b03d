// Who comes to a preview: what they bring, and whether a person sits in front of it.
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { AccessQuestion, Credential } from '#src/wire/access.ts'
import { countsAsActivity, credentialsOf } from '../credential.ts'
import { isPageOf, isPageOfPreview, type PreviewAddress } from './address.ts'
import { tokensOf } from './cookies.ts'

/** A browser opens a page: a person reads the answer, and redirects are followed with cookies. */
export const isNavigation = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  /\btext\/html\b/i.test(headers.accept ?? '') &&
  [undefined, 'navigate'].includes(headers['sec-fetch-mode'] as string | undefined)

/** What a person looks at, by any method, such as a form that another site sends for its visitor. */
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

/** A page is opened in a frame of another page. */
const isFramed = ({ headers }: IncomingMessage): boolean =>
  ['iframe', 'frame', 'embed', 'object', 'fencedframe'].includes(String(headers['sec-fetch-dest'] ?? ''))

/** A frame of a page of another site: what is set there is for frames of that site only. */
export const isFramedElsewhere = (request: IncomingMessage): boolean =>
  isFramed(request) && request.headers['sec-fetch-site'] === 'cross-site' && protocolOf(request) === 'https'

/** Links may come from anywhere, as what they open is for eyes only. */
const isLink = ({ method, headers }: IncomingMessage): boolean =>
  headers.origin === undefined &&
  (headers['sec-fetch-site'] === undefined ||
    (headers['sec-fetch-mode'] === 'navigate' && (method === 'GET' || method === 'HEAD')))

/**
 * Whether a cookie speaks for its visitor. To a browser all previews below one domain are one site, so it sends the cookie also
 * with what a page of another sandbox does, and lets that page read what comes over a WebSocket.
 */
const isOfVisitor = (request: IncomingMessage, { host, prefix }: PreviewAddress): boolean => {
  const { origin, referer, 'sec-fetch-site': site } = request.headers
  // All previews by path have one origin: nothing tells one page there from another, except that a link opens a whole page.
  if (prefix !== '') return isLink(request) && !isFramed(request)
  if (site === 'same-origin' || site === 'none') return true
  const from = origin ?? referer
  if (from !== undefined && isPageOf(from, host)) return true
  if (!isLink(request)) return false
  const isNeighbour = from === undefined ? site === 'same-site' : isPageOfPreview(from)
  // What another preview lays over a frame, its visitor would click through. Without `Sec-Fetch-Site`, as over plain HTTP, what
  // is no page may be a part of the other preview's page.
  if (isNeighbour && site !== undefined) return !isFramed(request)
  return !isNeighbour || isForPerson(request)
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
