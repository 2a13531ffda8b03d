// Shows one port of a sandbox to one caller: by then control has let the call in, and the sandbox is started.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Problem } from '#src/problems.ts'
import type { Access } from '#src/wire/access.ts'
import { forward } from '../forward.ts'
import type { Inside } from '../inside.ts'
import { type PreviewAddress, urlAtId, visibleUrl } from './address.ts'
import { acceptedCookie, authCookie, hasAccepted } from './cookies.ts'
import { insideOf, type Visit } from './destination.ts'
import { warningPage } from './pages.ts'
import { isForPerson, isFramedElsewhere, isNavigation, protocolOf } from './visitor.ts'

type Show = Visit & {
  response: ServerResponse /** Before the first byte of a body is asked for. */
  onForward: () => void
}

const goTo = (response: ServerResponse, location: string, cookies: readonly string[], status = 303) => {
  response.writeHead(status, [
    'Location',
    location,
    'Cache-Control',
    'no-store',
    'Content-Length',
    '0',
    ...cookies.flatMap((cookie) => ['Set-Cookie', cookie]),
  ])
  response.end()
}

/** Browsers say where a form comes from; another site's cannot press the button for its visitor. */
const checkOwnForm = ({ headers: { origin } }: IncomingMessage, { host }: PreviewAddress) => {
  if (origin === undefined || !URL.canParse(origin) || new URL(origin).host !== host.toLowerCase()) {
    throw new Problem('forbidden', 'This form is of another site.')
  }
}

const isWarned = ({ request, address, access }: Visit): boolean =>
  access.warnsVisitors &&
  access.openedBy !== 'bearer' &&
  access.openedBy !== 'preview-header' &&
  isForPerson(request) &&
  String(request.headers['x-daytona-skip-preview-warning'] ?? '').toLowerCase() !== 'true' &&
  !hasAccepted(request.headers.cookie, address, access.sandboxId, protocolOf(request) === 'https')

/**
 * A name says another thing in each organization, and may be another sandbox's tomorrow. Its address therefore shows nothing, so
 * that a browser keeps what it has of one sandbox by that sandbox's id; the token of a signed address stands for one sandbox too.
 */
export const isAtId = (address: PreviewAddress, { sandboxId, openedBy }: Access): boolean =>
  address.sandbox === sandboxId || openedBy === 'signed-preview'

/** Throws for what cannot be sent on with its body, or as an upgrade. */
export const checkAtId = (address: PreviewAddress, access: Access): void => {
  if (isAtId(address, access)) return
  throw new Problem('bad_request', `Previews take this at the id of the sandbox only: ${access.sandboxId}.`)
}

export const showPreview = async (inside: Pick<Inside, 'request'>, show: Show): Promise<void> => {
  const { request, response, address, access } = show
  if (!isAtId(address, access) && (request.method === 'GET' || request.method === 'HEAD')) {
    return goTo(response, urlAtId(address, access.sandboxId), [], 307)
  }
  checkAtId(address, access)
  const isSecure = protocolOf(request) === 'https'
  const { sandboxId, openedBy, warnsVisitors } = access
  const { queryToken, prefix, path, query } = address
  // Once only, so that the token stands in no history, bookmark or referrer, and pages find what they load.
  const ownCookies =
    openedBy === 'preview-query' && queryToken !== undefined
      ? [authCookie(address, sandboxId, queryToken, isSecure)]
      : []

  if (address.isAcceptance && warnsVisitors && request.method === 'POST') {
    checkOwnForm(request, address)
    return goTo(response, visibleUrl(address), [...ownCookies, acceptedCookie(address, sandboxId, isSecure)])
  }
  if (isNavigation(request) && ownCookies.length > 0) return goTo(response, visibleUrl(address), ownCookies)
  // Links of a page are read relative to its address, so that has to end in a slash.
  if (path === '' && isNavigation(request)) return goTo(response, `${prefix}/${query}`, ownCookies)
  if (isWarned(show)) {
    const { body, headers } = warningPage(address, isFramedElsewhere(request))
    response.writeHead(200, headers).end(body)
    return
  }
  show.onForward()
  await forward({ request, response, destination: insideOf(inside, { ...show, ownCookies }) })
}
