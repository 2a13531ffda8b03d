// Shows one port of a sandbox to one caller. Control has already admitted the call, and the sandbox is started.
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
  response: ServerResponse
  /** Called before the first byte of the request body is read. Sends `100 Continue` if the caller waits for that. */
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

/** Throws if another site has sent the form of the warning page. Other sites must not accept the warning in the visitor's name. */
const checkOwnForm = ({ headers: { origin } }: IncomingMessage, { host }: PreviewAddress) => {
  if (origin === undefined || !URL.canParse(origin) || new URL(origin).host !== host.toLowerCase()) {
    throw new Problem('forbidden', 'This form was sent from another site.')
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
 * Whether content may be served at this address. A sandbox's name does not suffice: it may mean another sandbox later, and
 * browsers store data per host name.
 */
export const isAtId = (address: PreviewAddress, { sandboxId, openedBy }: Access): boolean =>
  address.sandbox === sandboxId || openedBy === 'signed-preview'

/**
 * Throws if the address contains the sandbox's name instead of its id. Used for calls that are not redirected, such as
 * upgrades.
 */
export const checkAtId = (address: PreviewAddress, access: Access): void => {
  if (isAtId(address, access)) return
  throw new Problem(
    'bad_request',
    `The address of this call must have the id of the sandbox, ${access.sandboxId}, in place of its name.`,
  )
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
  // A cookie replaces the token in the address, so that a person's history, bookmarks and referrers do not have it.
  const ownCookies =
    openedBy === 'preview-query' && queryToken !== undefined
      ? [authCookie(address, sandboxId, queryToken, isSecure)]
      : []

  if (address.isAcceptance && warnsVisitors && request.method === 'POST') {
    checkOwnForm(request, address)
    return goTo(response, visibleUrl(address), [...ownCookies, acceptedCookie(address, sandboxId, isSecure)])
  }
  if (isNavigation(request) && ownCookies.length > 0) return goTo(response, visibleUrl(address), ownCookies)
  // Links of a page are relative to its address, so the address must end in a slash.
  if (path === '' && isNavigation(request)) return goTo(response, `${prefix}/${query}`, ownCookies)
  if (isWarned(show)) {
    const { body, headers } = warningPage(address, isFramedElsewhere(request))
    response.writeHead(200, headers).end(body)
    return
  }
  show.onForward()
  await forward({ request, response, destination: insideOf(inside, { ...show, ownCookies }) })
}
