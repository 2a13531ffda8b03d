// Sends the result of a single sign-on: redirects browsers to the dashboard, and sends other clients JSON. Nothing in the request
// can change the target of a redirect.
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { wantsPage } from '#src/http/wants-page.ts'
import { Problem } from '#src/problems.ts'
import type { Session } from './sign-in.ts'

export type Delivery = { request: FastifyRequest; reply: FastifyReply; dashboardUrl: string; publicUrl: string }

const findPage = ({ request, dashboardUrl }: Delivery): URL | undefined =>
  wantsPage(request.headers.accept) ? new URL(dashboardUrl) : undefined

const protect = (reply: FastifyReply) => {
  reply.header('cache-control', 'no-store').header('referrer-policy', 'no-referrer')
}

/** Sets the redirect. The server sends the redirect after the route has returned. */
const send = (reply: FastifyReply, url: string) => {
  reply.status(302).header('location', url)
}

const markSeconds = 60

/**
 * Sets a cookie with a hash of the token. The dashboard accepts a token from its URL only with this cookie. Without this check, an
 * attacker could send somebody a URL that signs them in as the attacker. The hash is not secret.
 */
const markToken = ({ reply, publicUrl }: Delivery, token: string) => {
  const isSecure = publicUrl.startsWith('https:')
  const name = `${isSecure ? '__Host-' : ''}alcove-sso-token`
  const mark = `${name}=${hash('sha256', token, 'base64url')}; Path=/; Max-Age=${markSeconds}; SameSite=Lax`
  reply.header('set-cookie', isSecure ? `${mark}; Secure` : mark)
}

/**
 * Ends a sign-in. A client that asked for JSON gets the session. A browser gets the token after `#` in the URL: browsers never send
 * this part to a server.
 */
export const deliverSession = (delivery: Delivery, session: Session): Session | undefined => {
  const { reply } = delivery
  protect(reply)
  const page = findPage(delivery)
  if (page === undefined) return session
  markToken(delivery, session.accessToken)
  page.hash = new URLSearchParams({
    access_token: session.accessToken,
    token_type: session.tokenType,
    expires_at: session.expiresAt,
    organization_id: session.organizationId,
  }).toString()
  send(reply, page.href)
  return undefined
}

export const deliverRedirect = ({ reply }: Delivery, url: string): void => {
  protect(reply)
  send(reply, url)
}

/**
 * Runs a step of a single sign-on. In a browser, a Problem becomes a redirect to the dashboard, which shows the problem. All other
 * errors are thrown.
 */
export const delivering = async <T>(delivery: Delivery, work: () => Promise<T>): Promise<T | undefined> => {
  try {
    return await work()
  } catch (error) {
    protect(delivery.reply)
    const page = findPage(delivery)
    if (page === undefined || !(error instanceof Problem)) throw error
    page.searchParams.set('error', error.wireCode.toLowerCase())
    send(delivery.reply, page.href)
    return undefined
  }
}
