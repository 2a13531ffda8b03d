// Who comes to a preview: what they bring, and whether a person sits in front of it.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { AccessQuestion } from '#src/wire/access.ts'
import { countsAsActivity, credentialsOf } from '../credential.ts'
import type { PreviewAddress } from './address.ts'
import { tokensOf } from './cookies.ts'

/** A browser that opens a page: what it gets is read by a person, and redirects are followed with cookies. */
export const isNavigation = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  /\btext\/html\b/i.test(headers.accept ?? '') &&
  [undefined, 'navigate'].includes(headers['sec-fetch-mode'] as string | undefined)

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

export const questionOf = (headers: IncomingHttpHeaders, address: PreviewAddress): AccessQuestion => ({
  sandboxIdOrName: address.sandbox,
  credentials: [
    ...credentialsOf(headers, address.queryToken),
    ...tokensOf(headers.cookie).map((token) => ({ kind: 'preview-cookie', token }) as const),
  ],
  port: address.port,
  countsAsActivity: countsAsActivity(headers),
})
