// A server inside a sandbox as a destination. It is told who calls as behind any reverse proxy, sees none of our
// credentials, not even in its own address, and what it answers concerns itself only.
import type { IncomingMessage } from 'node:http'
import { Problem } from '#src/problems.ts'
import type { Access } from '#src/wire/access.ts'
import type { Destination } from '../destination.ts'
import { crossing, framing, upgrading } from '../headers.ts'
import type { Runners } from '../runners.ts'
import { authKey } from '../target.ts'
import type { PreviewAddress } from './address.ts'
import { asVisible, withoutOurs } from './cookies.ts'
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
  ...forwarded,
])

/** What would concern every preview that shares the host. */
const ofWholeHost = new Set(['alt-svc', 'nel', 'report-to', 'service-worker-allowed', 'strict-transport-security'])

/** Rewritten, or what would concern every preview below the same domain: cookies are cleared of all of it. */
const neverOut = new Set(['set-cookie', 'location', 'clear-site-data'])

/** A token in the address is a credential: the server inside sees the id in its place. */
const names = (address: PreviewAddress, { sandboxId, openedBy }: Access) => {
  const { host, prefix, sandbox } = address
  if (openedBy !== 'signed-preview') return { host, prefix, hide: (text: string) => text }
  const hide = (text: string) => text.replaceAll(new RegExp(sandbox, 'gi'), sandboxId)
  return { host: hide(host), prefix: hide(prefix), hide }
}

const isOurBearer = (value: string, { openedBy, isBearerOurs }: Access) =>
  /^bearer +/i.test(value) && (isBearerOurs || openedBy === 'bearer' || /^bearer +dtn_/i.test(value))

const pairs = (name: string, value: string | undefined) => (value === undefined || value === '' ? [] : [name, value])

const inward = (request: IncomingMessage, address: PreviewAddress, access: Access, isUpgrade: boolean): string[] => {
  const { headers, socket } = request
  const { host, prefix, hide } = names(address, access)
  const [, port] = /:(\d+)$/.exec(host) ?? []
  const protocol = protocolOf(request)
  const referer = headers.referer?.includes(authKey) ? undefined : headers.referer
  return [
    ...pairs('Host', host),
    ...crossing(request, (name, value) => {
      if (rewritten.has(name) || name.startsWith('x-daytona-') || name === 'x-service-organization-id') return false
      return name !== 'authorization' || !isOurBearer(value, access)
    }),
    ...pairs('Cookie', headers.cookie === undefined ? undefined : withoutOurs(headers.cookie)),
    ...pairs('Origin', headers.origin && hide(headers.origin)),
    ...pairs('Referer', referer && hide(referer)),
    ...pairs('X-Forwarded-For', [headers['x-forwarded-for'], socket.remoteAddress].filter(Boolean).join(', ')),
    ...pairs('X-Forwarded-Host', host),
    ...pairs('X-Forwarded-Port', port ?? (protocol === 'https' ? '443' : '80')),
    ...pairs('X-Forwarded-Proto', protocol),
    ...pairs('X-Forwarded-Prefix', prefix),
    ...(isUpgrade ? upgrading(request) : [...framing(request), 'Connection', 'close']),
  ]
}

/** Where a redirect leads, seen from outside: the server inside knows no token, and rarely its prefix. */
const locationOf = (location: string, address: PreviewAddress, access: Access): string => {
  const [, scheme = '', authority, rest = ''] = /^([a-z]+:)?\/\/([^/?#\\]*)(.*)$/is.exec(location) ?? []
  const { host, prefix } = names(address, access)
  const outside = (path: string) =>
    address.prefix + (prefix !== '' && path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path)
  if (authority === undefined) return location.startsWith('/') ? outside(location) : location
  return authority.toLowerCase() === host.toLowerCase() ? `${scheme}//${address.host}${outside(rest)}` : location
}

const outward = (answer: IncomingMessage, address: PreviewAddress, access: Access, ownCookies: readonly string[]) => {
  const plain = crossing(answer, (name) => !neverOut.has(name) && (address.prefix === '' || !ofWholeHost.has(name)))
  const { location, 'set-cookie': cookies = [] } = answer.headers
  const visible = cookies.flatMap((cookie) => asVisible(cookie, address.prefix) ?? [])
  return [
    ...plain,
    ...(location === undefined ? [] : ['Location', locationOf(location, address, access)]),
    ...[...visible, ...ownCookies].flatMap((cookie) => ['Set-Cookie', cookie]),
  ]
}

export type Visit = {
  request: IncomingMessage
  address: PreviewAddress
  access: Access
  /** Set for the visitor with whatever the server answers. */
  ownCookies?: readonly string[]
}

export const insideOf = (runners: Runners, { request, address, access, ownCookies = [] }: Visit): Destination => {
  const { port, path, query } = address
  return {
    path: `${path || '/'}${query}`,
    send: (outgoing) => runners.requestInside(access, port, outgoing),
    inward: (isUpgrade) => inward(request, address, access, isUpgrade),
    outward: (answer) => outward(answer, address, access, ownCookies),
    failure: (cause) =>
      cause instanceof Problem
        ? cause
        : new Problem('bad_gateway', `What listens on port ${port} did not answer this call in HTTP.`, { cause }),
  }
}
