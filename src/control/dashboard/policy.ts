// Makes the content security policy of the dashboard's pages: what the pages may load, and to which servers they may connect.
import { readDiscovery } from '../auth/fetch-keys.ts'
import type { Parts } from '../parts.ts'

const discoveryMs = 3000
const discoveryKeptMs = 60 * 60 * 1000
const discoveryPauseMs = 30_000

const originOf = (url: unknown): string[] =>
  typeof url === 'string' && URL.canParse(url) && /^https?:/.test(url) ? [new URL(url).origin] : []

/** Returns the origins of a gate: one for HTTP calls and one for WebSockets. */
const gateOrigins = (url: string): string[] =>
  originOf(url).flatMap((origin) => [origin, origin.replace(/^http/, 'ws')])

/** The endpoints of an issuer that a page's script calls. The policy does not restrict endpoints that open as pages. */
const calledEndpoints = ['token_endpoint', 'revocation_endpoint', 'userinfo_endpoint'] as const

/**
 * Returns a function that lists the origins which pages call at an issuer. The issuer's discovery document names these origins.
 * The document is used for `discoveryKeptMs`. After a failed read, the next try is after `discoveryPauseMs`.
 */
const openIssuer = (issuer: string): (() => Promise<string[]>) => {
  let known = originOf(issuer)
  let freshUntil = Number.NEGATIVE_INFINITY
  let asking: Promise<void> | undefined
  const ask = async () => {
    try {
      const found = await readDiscovery(issuer, AbortSignal.timeout(discoveryMs))
      known = [issuer, ...calledEndpoints.map((name) => found[name])].flatMap(originOf)
      freshUntil = performance.now() + discoveryKeptMs
    } catch {
      freshUntil = performance.now() + discoveryPauseMs
    }
    asking = undefined
  }
  return async () => {
    if (performance.now() >= freshUntil) {
      asking ??= ask()
      await asking
    }
    return known
  }
}

/** Returns a function that lists the origins, other than control, to which the pages of the dashboard may connect. */
export const openConnections = ({ settings }: Pick<Parts, 'settings'>) => {
  // Users sign in at the first issuer of the settings. If the settings name no issuer, they sign in at this server.
  const [issuer] = settings.identity.issuers
  const listIssuerOrigins = issuer === undefined ? async () => [] : openIssuer(issuer)
  return async (): Promise<string[]> => {
    // The gates of organizations are left out here. With many gates, the Content-Security-Policy header could become too long for
    // reverse proxies. Pages do not need these gates, because this server's gate reaches the sandboxes of every region.
    return [...new Set([...gateOrigins(settings.proxyUrl), ...(await listIssuerOrigins())])]
  }
}

export const contentSecurityPolicy = (nonce: string, connections: readonly string[]): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "font-src 'self'",
    `connect-src ${["'self'", ...connections].join(' ')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "object-src 'none'",
  ].join('; ')

/** The content security policy of all answers of the dashboard that are not pages. */
export const closedPolicy = "default-src 'none'; frame-ancestors 'none'"
