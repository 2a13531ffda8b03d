// Calls servers that somebody other than the operator has named: identity providers, webhook endpoints. Such a call reaches
// the public Internet only, follows no redirect, is not kept alive, and is bounded in time, bytes and number.
import { lookup } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import { Client } from 'undici'
import type { Networks } from '#src/kit/networks.ts'
import { OutboundError } from './error.ts'
import { type Resolve, resolveTarget, type Target } from './target.ts'

export type OutboundRequest = {
  method: 'GET' | 'POST'
  url: string
  headers?: Record<string, string>
  body?: string | Uint8Array
  /** Refuses `http:`, but for what the operator has named; false unless told. */
  requireTls?: boolean
  /** Of everything together, the name included. */
  timeoutMilliseconds?: number
  /** Of the answer's body; what is larger is an error. */
  mostBytes?: number
}

type OutboundReply = { status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }

export type Outbound = {
  /** Answers whatever the server answered, redirects and errors too. Throws an OutboundError when nothing usable came. */
  send: (request: OutboundRequest) => Promise<OutboundReply>
}

type OutboundParts = {
  /** What may be called besides the public Internet. */
  allowed: Networks
  resolve?: Resolve
}

const standardTimeout = 10_000
const standardBytes = 1024 * 1024
const headerBytes = 16 * 1024
/** Calls at one time; one more fails at once. */
const mostAtOnce = 64

const resolveName: Resolve = (hostname) => lookup(hostname, { all: true })

/** Connects where we looked, whatever the name says now. */
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

const exchange = async (target: Target, request: OutboundRequest, signal: AbortSignal): Promise<OutboundReply> => {
  const client = new Client(target.url.origin, {
    allowH2: false,
    connect: { lookup: pinned(target) },
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

export const createOutbound = ({ allowed, resolve = resolveName }: OutboundParts): Outbound => {
  let running = 0
  return {
    send: async (request) => {
      if (running >= mostAtOnce) throw new OutboundError('busy', 'Too many servers are being called at this moment.')
      running += 1
      const signal = AbortSignal.timeout(request.timeoutMilliseconds ?? standardTimeout)
      try {
        const rules = { allowed, resolve, requireTls: request.requireTls ?? false }
        const target = await within(signal, resolveTarget(request.url, rules))
        return await exchange(target, request, signal)
      } catch (error) {
        throw asOutboundError(error, signal)
      } finally {
        running -= 1
      }
    },
  }
}
