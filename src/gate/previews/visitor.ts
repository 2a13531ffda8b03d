// Reads from a request who visits a preview: the visitor's credentials, and whether the visitor is a person with a browser.
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { AccessQuestion, Credential } from '#src/wire/access.ts'
import { countsAsActivity, credentialsOf } from '../credential.ts'
import { isPageOf, isPageOfPreview, type PreviewAddress } from './address.ts'
import { tokensOf } from './cookies.ts'

/** Whether a browser opens a page. If so, a person reads the answer, and the browser follows redirects with cookies. */
export const isNavigation = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  /\btext\/html\b/i.test(headers.accept ?? '') &&
  [undefined, 'navigate'].includes(headers['sec-fetch-mode'] as string | undefined)

/** Whether a browser shows the answer to a person as a page. If the person sends a form, the method may be another than GET. */
export const isForPerson = ({ headers }: IncomingMessage): boolean => {
  const mode = headers['sec-fetch-mode']
  return mode === 'navigate' || (mode === undefined && /\btext\/html\b/i.test(headers.accept ?? ''))
}

export const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined

/** Returns the protocol that the visitor uses: to this gate, or to the reverse proxy that ends TLS before the gate. */
export const protocolOf = ({ headers, socket }: IncomingMessage): 'http' | 'https' => {
  const said = String(headers['x-forwarded-proto'] ?? '')
    .split(',')[0]!
    .trim()
    .toLowerCase()
  if (said === 'http' || said === 'https') return said
  return (socket as Partial<TLSSocket>).encrypted ? 'https' : 'http'
}

/** Whether the page opens in a frame of another page. */
const isFramed = ({ headers }: IncomingMessage): boolean =>
  ['iframe', 'frame', 'embed', 'object', 'fencedframe'].includes(String(headers['sec-fetch-dest'] ?? ''))

/** Whether the page opens in a frame of another site. The page's cookies then apply only in frames of the other site. */
export const isFramedElsewhere = (request: IncomingMessage): boolean =>
  isFramed(request) && request.headers['sec-fetch-site'] === 'cross-site' && protocolOf(request) === 'https'

/**
 * Whether the browser makes the request because the visitor follows a link. The page with the link may be of any site, because
 * that page cannot read the answer. Without `Sec-Fetch-Site`, every request without `Origin` counts.
 */
const isLink = ({ method, headers }: IncomingMessage): boolean =>
  headers.origin === undefined &&
  (headers['sec-fetch-site'] === undefined ||
    (headers['sec-fetch-mode'] === 'navigate' && (method === 'GET' || method === 'HEAD')))

/**
 * Whether the visitor, and not another sandbox's page, has caused the request. For a browser, all previews below one domain are
 * one site. So it sends the preview cookie also with requests of another sandbox's page.
 */
const isOfVisitor = (request: IncomingMessage, { host, prefix }: PreviewAddress): boolean => {
  const { origin, referer, 'sec-fetch-site': site } = request.headers
  // Previews by path share one origin, so the request may come from another sandbox's page. Only links are safe: a page cannot
  // read the page that it links to.
  if (prefix !== '') return isLink(request) && !isFramed(request)
  if (site === 'same-origin' || site === 'none') return true
  const from = origin ?? referer
  if (from !== undefined && isPageOf(from, host)) return true
  if (!isLink(request)) return false
  const isNeighbour = from === undefined ? site === 'same-site' : isPageOfPreview(from)
  // A neighbour is a page of another preview. It could show this preview in a frame and catch the visitor's clicks. So the gate
  // does not accept the cookie in a neighbour's frame. Without the header `Sec-Fetch-Site`, the gate cannot see frames. Then the
  // gate accepts the cookie only for requests that open a page.
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
