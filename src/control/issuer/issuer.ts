// Alcove's own OpenID Connect issuer, below /oidc. This issuer is used if the operator configures no other issuer.
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import type { Provider } from 'oidc-provider'
import { Problem } from '#src/problems.ts'
import { originOf } from '../audit/subject.ts'
import type { Parts } from '../parts.ts'
import { createAddressLimit } from '../rate-limits/by-address.ts'
import { SharedCounters } from '../rate-limits/shared-counters.ts'
import { isUnreachable } from '../storage/database.ts'
import { issuerPath, issuerUrl } from './address.ts'
import { sweepRecords } from './delete-records.ts'
import { ensureKeys, type IssuerKeys } from './keys.ts'
import { createKnownBrowsers } from './known-browsers.ts'
import { contentSecurityPolicy, messagePage } from './pages.ts'
import { beginFrom } from './record-source.ts'
import { createSignInForm, type Visit } from './sign-in-form.ts'

export type EmbeddedIssuer = {
  url: string
  /** The issuer's public keys. This process verifies the issuer's tokens with them, without a call over the network. */
  getKey: JWTVerifyGetKey
  /** Adds the issuer's routes; call before the server listens. `limit` throws if a call exceeds the rate limit. */
  attach: (server: FastifyInstance, limit: (request: FastifyRequest) => Promise<void>) => Promise<void>
  /** Replaces old signing keys, and deletes the expired sign-ins and sessions of the issuer from the database. */
  sweep: () => Promise<void>
  close: () => void
}

const begunElsewhere =
  'This step of the sign-in has expired, or was started in another browser. Go back and start again.'

const sweepMilliseconds = 60 * 1000
/** Maximum bytes of a URL, and of a body. The limit also bounds what oidc-provider stores for one call. */
const longest = 4096
/**
 * Maximum number of calls per address and minute that make oidc-provider store something. A sign-in makes two to five such
 * calls.
 */
const mostBegunPerMinute = 300
const leavesNothing = /^\/oidc\/(?:token|jwks|\.well-known|interaction)(?:[/?]|$)/
const reloadMilliseconds = 1000

/** Sets host and protocol of a request to those of the configured URL. A proxy or an attacker may have set other values. */
const sayWhere = (request: IncomingMessage, { host, protocol }: URL) => {
  for (const name of Object.keys(request.headers)) if (/^(x-)?forwarded/.test(name)) delete request.headers[name]
  request.headers.host = host
  request.headers['x-forwarded-proto'] = protocol.slice(0, -1)
}

export const openIssuer = async (parts: Parts): Promise<EmbeddedIssuer> => {
  const { database, settings, clock, log } = parts
  const at = new URL(issuerUrl(settings))
  let keys!: IssuerKeys
  let provider: Promise<Provider> | undefined
  let keySet!: JWTVerifyGetKey
  let kids = ''
  let loadedAt = 0

  /** Reads the signing keys from the database again, because another control process may have replaced a key. */
  const load = async () => {
    loadedAt = performance.now()
    keys = await ensureKeys(parts)
    const found = keys.signing.map(({ kid }) => kid).join()
    if (found === kids) return
    kids = found
    const publicKeys = keys.signing.map(({ kty, kid, alg, use, n, e }) => ({ kty, kid, alg, use, n, e }))
    keySet = createLocalJWKSet({ keys: publicKeys as never })
    provider = undefined
  }
  await load()

  /** Loads oidc-provider at the first sign-in. The start of the server does not wait for the package. */
  const openProvider = () => {
    provider ??= import('./provider.ts').then(({ createProvider }) => createProvider(parts, keys))
    return provider
  }

  const browsers = createKnownBrowsers({ secret: keys.cookie, clock, isSecure: at.protocol === 'https:' })
  const counters = SharedCounters.of(parts)
  const signIn = createSignInForm({ provider: openProvider, database, clock, origin: at.origin, browsers, counters })

  const serve = async (visit: Visit) => {
    const { request, response } = visit
    sayWhere(request, at)
    const path = request.url ?? ''
    response.setHeader('content-security-policy', contentSecurityPolicy)
    response.setHeader('x-content-type-options', 'nosniff')
    // With the policy `no-referrer`, browsers would send `Origin: null` with our own forms, and sign-in-form.ts would
    // refuse the forms.
    response.setHeader('referrer-policy', 'same-origin')
    response.setHeader('cache-control', 'no-store')
    const [, uid] = /^\/oidc\/interaction\/([\w-]{1,64})$/.exec(path.split('?')[0]!) ?? []
    if (uid !== undefined) return await signIn(visit, uid)
    Object.assign(request, { originalUrl: path })
    request.url = path.slice(issuerPath.length) || '/'
    await (await openProvider()).callback()(request, response)
  }

  const sweep = async () => {
    await load()
    await sweepRecords(database.sql)
  }
  const timer = setInterval(
    () => void sweep().catch((error: unknown) => log.warn({ err: error }, 'the embedded issuer could not be swept')),
    sweepMilliseconds,
  )
  timer.unref()

  return {
    url: at.href,
    sweep,
    close: () => clearInterval(timer),
    getKey: async (header, token) => {
      try {
        return await keySet(header, token)
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || performance.now() - loadedAt < reloadMilliseconds)
          throw error
        await load()
        return await keySet(header, token)
      }
    },
    attach: async (server, limit) => {
      const limitBegun = createAddressLimit(counters, 'sign-ins begun', mostBegunPerMinute)
      await server.register(async (scope) => {
        scope.addHook('onRequest', async (request, reply) => {
          await limit(request)
          if (!leavesNothing.test(request.url)) await limitBegun(request, reply)
          const isLong = request.url.length > longest || Number(request.headers['content-length'] ?? 0) > longest
          if (isLong) throw new Problem('too_large', `A sign-in request can have at most ${longest} bytes.`)
        })
        // Turns off the parsing of bodies, because oidc-provider and the sign-in form read the bodies themselves.
        scope.removeAllContentTypeParsers()
        scope.addContentTypeParser('*', (_request, _body, done) => done(null, undefined))
        scope.all(`${issuerPath}/*`, async (request, reply) => {
          reply.hijack()
          try {
            const visit = { request: request.raw, response: reply.raw, address: request.ip, from: originOf(request) }
            await beginFrom(visit.address, () => serve(visit))
          } catch (error) {
            const isAway = isUnreachable(error)
            // A refused step of a sign-in is a mistake of the browser (level debug). An unreachable database is our own problem
            // (warning).
            if (isAway)
              request.log.warn({ reqId: request.id, err: error }, 'nobody can sign in while the database is away')
            else request.log.debug({ reqId: request.id, err: error }, 'a step of signing in was refused')
            if (reply.raw.headersSent) return void reply.raw.destroy()
            reply.raw.writeHead(isAway ? 503 : 400, { 'content-type': 'text/html; charset=utf-8' })
            reply.raw.end(messagePage('This did not work', isAway ? 'Try again in a moment.' : begunElsewhere))
          }
        })
      })
    },
  }
}
