// Calls servers whose URL comes from a user: identity providers and webhook endpoints. The calls reach only the public Internet and
// follow no redirects. Their time, their bytes and the number of concurrent calls are limited.
import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { SecureContext } from 'node:tls'
import { Client } from 'undici'
import { Budget } from '#src/kit/budget.ts'
import type { Networks } from '#src/kit/networks.ts'
import { OutboundError } from './error.ts'
import { readOwnNetworks } from './own-networks.ts'
import { type Resolve, resolveTarget, type Target } from './target.ts'

export type OutboundRequest = {
  method: 'GET' | 'POST'
  url: string
  headers?: Record<string, string>
  body?: string | Uint8Array
  /** Whether to refuse `http:` URLs, except in networks that the operator allows. Default: false. */
  requireTls?: boolean
  /** Time limit in milliseconds for the whole call, including the DNS look-up. */
  timeoutMilliseconds?: number
  /** Maximum bytes of the response body; a larger body is an error. */
  mostBytes?: number
  /**
   * The organization that gave the URL. Each organization may use a quarter of all concurrent calls. Without an organization, only
   * the limit for all concurrent calls applies.
   */
  organizationId?: string
}

type OutboundReply = { status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }

export type Outbound = {
  /** Returns the server's response, including redirects and errors. Throws an OutboundError if no usable response came. */
  send: (request: OutboundRequest) => Promise<OutboundReply>
}

type OutboundParts = {
  /** Networks that may be called in addition to the public Internet. */
  allowed: Networks
  /**
   * Returns the networks of this host. Calls to these networks are refused, except to networks in `allowed`. Called before each
   * outbound call.
   */
  readOwn?: () => Networks
  resolve?: Resolve
  /** Maximum number of concurrent calls. A call beyond this number fails immediately. Default: 64. */
  mostAtOnce?: number
  /** The error for a refused host name is thrown only after a whole multiple of this time. Default: 2000. */
  evenMilliseconds?: number
  /** The TLS certificates that are trusted. Default: Node's own list. */
  secureContext?: () => SecureContext
}

const standardTimeout = 10_000
const standardBytes = 1024 * 1024
const headerBytes = 16 * 1024
const standardAtOnce = 64
/**
 * Default of `evenMilliseconds`. The refusal of a host name comes only after a multiple of this time. So the delay does not reveal
 * whether the host name exists.
 */
const standardEvenMilliseconds = 2000
const shareOfOne = 1 / 4

const resolveName: Resolve = (hostname) => lookup(hostname, { all: true })

/** Makes a DNS look-up function that returns the checked addresses, so a DNS answer that changes later has no effect. */
const pinned =
  ({ addresses }: Target): LookupFunction =>
  (_hostname, { all }, done) => {
    const [first] = addresses
    if (all) done(null, addresses)
    else done(null, first!.address, first!.family)
  }

const within = async <T>(signal: AbortSignal, work: Promise<T>): Promise<T> => {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  return await Promise.race([work, aborted]).finally(() => signal.removeEventListener('abort', abort))
}

const asOutboundError = (error: unknown, signal: AbortSignal): OutboundError => {
  if (error instanceof OutboundError) return error
  const { code } = (error ?? {}) as { code?: string }
  if (signal.aborted) return new OutboundError('timeout', 'The server did not answer in time.', { cause: error })
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE' || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new OutboundError('too_large', 'The answer of the server is too large.', { cause: error })
  }
  return new OutboundError('unreachable', 'The server could not be reached.', { cause: error })
}

const exchange = async (
  target: Target,
  request: OutboundRequest,
  signal: AbortSignal,
  secureContext?: SecureContext,
): Promise<OutboundReply> => {
  const client = new Client(target.url.origin, {
    allowH2: false,
    connect: { lookup: pinned(target), ...(secureContext === undefined ? {} : { secureContext }) },
    maxHeaderSize: headerBytes,
    maxResponseSize: request.mostBytes ?? standardBytes,
  })
  try {
    const { statusCode, headers, body } = await client.request({
      method: request.method,
      path: `${target.url.pathname}${target.url.search}`,
      headers: request.headers ?? {},
      body: request.body ?? null,
      reset: true,
      signal,
    })
    return { status: statusCode, headers, body: Buffer.from(await body.arrayBuffer()) }
  } finally {
    await client.destroy()
  }
}

/** Returns a client for URLs that this organization has given. The calls of this client are counted for the organization. */
export const outboundOf = ({ send }: Outbound, organizationId: string): Outbound => ({
  send: (request) => send({ ...request, organizationId }),
})

/** Returns whether a URL was refused because of the addresses of its host name. False for an IP address in the URL. */
const isOfName = (error: unknown, url: string) =>
  error instanceof OutboundError &&
  error.reason === 'not_public' &&
  isIP(new URL(url).hostname.replace(/^\[|\]$/g, '')) === 0

export const createOutbound = ({
  allowed,
  readOwn = readOwnNetworks,
  resolve = resolveName,
  mostAtOnce = standardAtOnce,
  evenMilliseconds = standardEvenMilliseconds,
  secureContext,
}: OutboundParts): Outbound => {
  /** Each call without an organization gets an owner of its own. So only the limit `all` applies to such a call. */
  const running = new Budget<string | symbol>({ each: Math.ceil(mostAtOnce * shareOfOne), all: mostAtOnce })
  return {
    send: async (request) => {
      const owner = request.organizationId ?? Symbol('the server')
      if (!running.take(owner)) throw new OutboundError('busy', 'Too many servers are being called at this moment.')
      const signal = AbortSignal.timeout(request.timeoutMilliseconds ?? standardTimeout)
      try {
        const rules = { allowed, own: readOwn(), resolve, requireTls: request.requireTls ?? false }
        const begun = performance.now()
        const target = await within(signal, resolveTarget(request.url, rules)).catch(async (error: unknown) => {
          if (isOfName(error, request.url)) {
            const passed = performance.now() - begun
            await delay(evenMilliseconds - (passed % evenMilliseconds), undefined, { signal }).catch(() => {})
          }
          throw error
        })
        return await exchange(target, request, signal, secureContext?.())
      } catch (error) {
        throw asOutboundError(error, signal)
      } finally {
        running.give(owner)
      }
    },
  }
}
