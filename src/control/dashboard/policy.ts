// What the pages of the dashboard may load, and where they may connect to.
import { readDiscovery } from '../auth/fetch-keys.ts'
import type { Parts } from '../parts.ts'

const discoveryMs = 3000
const discoveryKeptMs = 60 * 60 * 1000
const discoveryPauseMs = 30_000

const originOf = (url: unknown): string[] =>
  typeof url === 'string' && URL.canParse(url) && /^https?:/.test(url) ? [new URL(url).origin] : []

/** The origin of a gate, for calls and for WebSockets. */
const gateOrigins = (url: string): string[] =>
  originOf(url).flatMap((origin) => [origin, origin.replace(/^http/, 'ws')])

/** Endpoints of an issuer that a page calls. To the others it navigates, which needs no permission. */
const calledEndpoints = ['token_endpoint', 'revocation_endpoint', 'userinfo_endpoint'] as const

/** Reads an issuer's origins at most once in `discoveryKeptMs`, or in `discoveryPauseMs` if that failed. */
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

/** Returns a function that finds the origins that the pages may connect to, besides their own. */
export const openConnections = ({ settings }: Pick<Parts, 'settings'>) => {
  // People sign in at the first issuer. If there is none, they sign in at this server.
  const [issuer] = settings.identity.issuers
  const listIssuerOrigins = issuer === undefined ? async () => [] : openIssuer(issuer)
  return async (): Promise<string[]> => {
    // Sandboxes of every region are reached by the gate of this server. Regions of organizations are not in the list: their
    // owners could make the header so long that reverse proxies refuse it.
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

/** The content security policy of everything that is no page. */
export const closedPolicy = "default-src 'none'; frame-ancestors 'none'"
