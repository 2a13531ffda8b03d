// What the pages of the dashboard may load, and where they may connect to.
import { readDiscovery } from '../auth/fetch-keys.ts'
import type { Parts } from '../parts.ts'
import { listProxyUrls } from '../regions/service.ts'

/** Maximum number of regions whose proxies the pages may call. Each makes the header longer. */
const mostProxies = 100
const proxiesKeptMs = 10_000

const discoveryMs = 3000
const discoveryKeptMs = 60 * 60 * 1000
const discoveryPauseMs = 30_000

const originOf = (url: unknown): string[] =>
  typeof url === 'string' && URL.canParse(url) && /^https?:/.test(url) ? [new URL(url).origin] : []

/** The origin of a gate, for calls and for WebSockets. */
const gateOrigins = (url: string): string[] =>
  originOf(url).flatMap((origin) => [origin, origin.replace(/^http/, 'ws')])

/** Calls `work` again only after `keptMs`, or after `pauseMs` if it failed. Then the last result is used. */
const remembering = <T>(work: () => Promise<T>, first: T, keptMs: number, pauseMs: number): (() => Promise<T>) => {
  let last = first
  let freshUntil = Number.NEGATIVE_INFINITY
  let asking: Promise<T> | undefined
  const ask = async () => {
    try {
      last = await work()
      freshUntil = performance.now() + keptMs
    } catch {
      freshUntil = performance.now() + pauseMs
    }
    asking = undefined
    return last
  }
  return async () => {
    if (performance.now() < freshUntil) return last
    asking ??= ask()
    return await asking
  }
}

/** Endpoints of an issuer that a page calls. To the others it navigates, which needs no permission. */
const calledEndpoints = ['token_endpoint', 'revocation_endpoint', 'userinfo_endpoint'] as const

/** Returns a function that finds the origins that the pages may connect to, besides their own. */
export const openConnections = ({ database, settings }: Pick<Parts, 'database' | 'settings'>) => {
  // People sign in at the first issuer. If there is none, they sign in at this server.
  const [issuer] = settings.identity.issuers
  const listIssuerOrigins = remembering(
    async () => {
      if (issuer === undefined) return []
      const found = await readDiscovery(issuer, AbortSignal.timeout(discoveryMs))
      return [issuer, ...calledEndpoints.map((name) => found[name])].flatMap(originOf)
    },
    originOf(issuer),
    discoveryKeptMs,
    discoveryPauseMs,
  )
  const listProxies = remembering(
    () => listProxyUrls(database.sql, mostProxies),
    [] as string[],
    proxiesKeptMs,
    proxiesKeptMs,
  )
  return async (): Promise<string[]> => {
    const [issuers, proxies] = await Promise.all([listIssuerOrigins(), listProxies()])
    return [...new Set([...[settings.proxyUrl, ...proxies].flatMap(gateOrigins), ...issuers])]
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
