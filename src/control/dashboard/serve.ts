// Serves the dashboard below /dashboard/. Every address that is not a file answers with the same HTML page.
// The files contain no credential: users must sign in, and the page then calls the public API.
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { wantsPage } from '#src/http/wants-page.ts'
import { escaped } from '#src/kit/escape.ts'
import { Problem } from '#src/problems.ts'
import type { Parts } from '../parts.ts'
import { dashboardPath } from '../settings/dashboard-url.ts'
import { type DashboardFile, immutablePrefix, type NoDashboard, openFiles } from './files.ts'
import { isOtherLoopback } from './other-loopback.ts'
import { closedPolicy, contentSecurityPolicy, openConnections } from './policy.ts'

const noncePlace = '__CSP_NONCE__'
const foreverSeconds = 365 * 24 * 60 * 60
/** Seconds after which the waiting page reloads itself. Browsers show this page while the dashboard is being built. */
const askAgainSeconds = 2

const common = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' }

const pageHeaders = {
  ...common,
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy':
    'clipboard-write=(self), camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
}

const queryOf = (url: string): string => (url.includes('?') ? url.slice(url.indexOf('?')) : '')

/** Returns the first encoding of the file that the caller accepts. Undefined if the caller accepts no encoding of the file. */
const encodingFor = ({ encoded }: DashboardFile, accepted: string): string | undefined => {
  const names = accepted
    .split(',')
    .filter((part) => !/;\s*q=0(?:\.0*)?\s*$/i.test(part))
    .map((part) => part.split(';')[0]!.trim().toLowerCase())
  return [...encoded.keys()].find((encoding) => names.includes(encoding))
}

const sendFile = (request: FastifyRequest, reply: FastifyReply, file: DashboardFile): FastifyReply => {
  const encoding = encodingFor(file, String(request.headers['accept-encoding'] ?? ''))
  const tag = `"${file.tag}${encoding === undefined ? '' : `-${encoding}`}"`
  reply.headers({
    ...common,
    'content-security-policy': closedPolicy,
    'cache-control': file.isImmutable ? `public, max-age=${foreverSeconds}, immutable` : 'no-cache',
    etag: tag,
  })
  if (file.encoded.size > 0) reply.header('vary', 'Origin, Accept-Encoding')
  const known = (request.headers['if-none-match'] ?? '').split(',').map((each) => each.trim().replace(/^W\//, ''))
  if (known.includes(tag)) return reply.status(304).send()
  if (encoding !== undefined) reply.header('content-encoding', encoding)
  return reply.type(file.type).send(encoding === undefined ? file.body : file.encoded.get(encoding))
}

const sendReason = (reply: FastifyReply, { why, isComing }: NoDashboard): FastifyReply => {
  reply.headers({ ...pageHeaders, 'content-security-policy': closedPolicy })
  if (isComing) reply.headers({ 'retry-after': askAgainSeconds, refresh: askAgainSeconds })
  return reply
    .status(503)
    .send(
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
        `<title>Alcove</title></head><body><h1>Alcove</h1><p>${escaped(why)}</p>` +
        `<p>The API of this server works without the dashboard.</p></body></html>`,
    )
}

type DashboardParts = Pick<Parts, 'settings'>

/**
 * Adds the routes of the dashboard. Call this before the server listens. `limit` throws if a call exceeds the rate
 * limit.
 */
export const serveDashboard = async (
  server: FastifyInstance,
  parts: DashboardParts,
  limit: (request: FastifyRequest) => Promise<void>,
): Promise<void> => {
  const { publicUrl, dashboardDirectory } = parts.settings
  const findDashboard = openFiles(dashboardDirectory)
  const listConnections = openConnections(parts)

  const sendPage = async (request: FastifyRequest, reply: FastifyReply, index: string): Promise<FastifyReply> => {
    await limit(request)
    const nonce = randomBytes(16).toString('base64')
    reply.headers({ ...pageHeaders, 'content-security-policy': contentSecurityPolicy(nonce, await listConnections()) })
    return reply.send(index.replaceAll(noncePlace, nonce))
  }

  server.get('/', async (request, reply) => {
    if (!wantsPage(request.headers.accept)) return reply.callNotFound()
    return reply.header('vary', 'Origin, Accept').redirect(`${dashboardPath}${queryOf(request.url)}`)
  })

  const serve = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const [path = ''] = request.url.split('?')
    if (isOtherLoopback(request.headers.host, publicUrl)) return reply.redirect(`${publicUrl}${request.url}`)
    if (path === '/dashboard') return reply.redirect(`${dashboardPath}${queryOf(request.url)}`)
    const dashboard = await findDashboard()
    if ('why' in dashboard) return sendReason(reply, dashboard)
    const name = path.slice(dashboardPath.length)
    const file = dashboard.files.get(name)
    if (file !== undefined) return sendFile(request, reply, file)
    if (name.startsWith(immutablePrefix)) throw new Problem('not_found', 'The dashboard has no such file.')
    return await sendPage(request, reply, dashboard.index)
  }
  server.get('/dashboard', serve)
  server.get('/dashboard/*', serve)
}
