// Ties a sign-in to the browser that began it: what comes back in another one was begun by somebody else (RFC 6749 §10.12).
import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

export const attemptSeconds = 600

const secretPattern = /^[\w-]{43}$/

/** `__Host-` keeps every other host and every plain connection from setting it; browsers take that over TLS only. */
const nameAt = (publicUrl: string) => (publicUrl.startsWith('https:') ? '__Host-alcove-sso' : 'alcove-sso')

export const newSecret = (): string => randomBytes(32).toString('base64url')

export const findBrowserSecret = (request: FastifyRequest, publicUrl: string): string | undefined => {
  const name = nameAt(publicUrl)
  const values = (request.headers.cookie ?? '').split(';').flatMap((pair) => {
    const [key, value] = pair.trim().split('=', 2)
    return key === name && value !== undefined ? [value] : []
  })
  const [only, ...more] = values
  // Two of one name: somebody has put theirs beside ours.
  return only !== undefined && more.length === 0 && secretPattern.test(only) ? only : undefined
}

/** Keeps a secret in the browser. It serves all sign-ins that the browser has begun, so two tabs do not disturb each other. */
export const keepBrowserSecret = (request: FastifyRequest, reply: FastifyReply, publicUrl: string): string => {
  const secret = findBrowserSecret(request, publicUrl) ?? newSecret()
  const secure = publicUrl.startsWith('https:') ? '; Secure' : ''
  const cookie = `${nameAt(publicUrl)}=${secret}; Path=/; Max-Age=${attemptSeconds}; HttpOnly; SameSite=Lax${secure}`
  reply.header('set-cookie', cookie)
  return secret
}
