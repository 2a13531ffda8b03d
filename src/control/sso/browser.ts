// Ties a single sign-on to the browser that began it. A callback in another browser is refused, because somebody else may have
// begun that sign-in (RFC 6749 §10.12).
import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

export const attemptSeconds = 600

const secretPattern = /^[\w-]{43}$/

/**
 * With the prefix `__Host-`, browsers accept the cookie only over TLS and only from this host. Without TLS, the name has
 * no prefix, because browsers would refuse the cookie.
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
  // A second cookie of our name comes from somebody else. So neither cookie is trusted.
  return only !== undefined && more.length === 0 && secretPattern.test(only) ? only : undefined
}

/** Stores a secret in a cookie. All sign-ins of a browser use the same secret, so that sign-ins in two tabs both work. */
export const keepBrowserSecret = (request: FastifyRequest, reply: FastifyReply, publicUrl: string): string => {
  const secret = findBrowserSecret(request, publicUrl) ?? newSecret()
  const secure = publicUrl.startsWith('https:') ? '; Secure' : ''
  const cookie = `${nameAt(publicUrl)}=${secret}; Path=/; Max-Age=${attemptSeconds}; HttpOnly; SameSite=Lax${secure}`
  reply.header('set-cookie', cookie)
  return secret
}
