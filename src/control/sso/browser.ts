// Ties a single sign-on to the browser that began it. A callback from another browser is refused, because somebody else
// may have begun that sign-in (RFC 6749 §10.12).
import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

export const attemptSeconds = 600

const secretPattern = /^[\w-]{43}$/

/**
 * The name of the cookie. With the prefix `__Host-`, browsers accept the cookie only over TLS, and no other host can
 * set it. Without TLS, the name has no prefix, because browsers would refuse the cookie.
 */
const nameAt = (publicUrl: string) => (publicUrl.startsWith('https:') ? '__Host-alcove-sso' : 'alcove-sso')

export const newSecret = (): string => randomBytes(32).toString('base64url')

export const findBrowserSecret = (request: FastifyRequest, publicUrl: string): string | undefined => {
  const name = nameAt(publicUrl)
  const values = (request.headers.cookie ?? '').split(';').flatMap((pair) => {
    const [key, value] = pair.trim().split('=', 2)
    return key === name && value !== undefined ? [value] : []
  })
  const [only, ...more] = values
  // If the browser sends two cookies with the name of our cookie (`nameAt`), somebody else has added one of them. So
  // neither is trusted.
  return only !== undefined && more.length === 0 && secretPattern.test(only) ? only : undefined
}

/**
 * Stores one secret in a cookie of the browser. All sign-ins of the browser use this secret, so that sign-ins in two
 * tabs both work.
 */
export const keepBrowserSecret = (request: FastifyRequest, reply: FastifyReply, publicUrl: string): string => {
  const secret = findBrowserSecret(request, publicUrl) ?? newSecret()
  const secure = publicUrl.startsWith('https:') ? '; Secure' : ''
  const cookie = `${nameAt(publicUrl)}=${secret}; Path=/; Max-Age=${attemptSeconds}; HttpOnly; SameSite=Lax${secure}`
  reply.header('set-cookie', cookie)
  return secret
}
