// The step of signing in where a person is: shows the form and reads it. Passwords are tried within limits, by address and account.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { createAddressKeys } from '../rate-limits/address-key.ts'
import type { Sql } from '../storage/database.ts'
import { issuerPath } from './address.ts'
import type { KnownBrowsers } from './known-browsers.ts'
import { signInPage } from './pages.ts'
import { findByPassword, longestPassword } from './passwords.ts'

const mostFormBytes = 4096

export type Visit = { request: IncomingMessage; response: ServerResponse; address: string }

type SignInForm = (visit: Visit, uid: string) => Promise<void>

const readForm = async (request: IncomingMessage): Promise<URLSearchParams | undefined> => {
  if (!/^application\/x-www-form-urlencoded(?:;|$)/i.test(request.headers['content-type'] ?? '')) return undefined
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of request) {
    bytes += piece.length
    if (bytes > mostFormBytes) return undefined
    pieces.push(piece)
  }
  return new URLSearchParams(Buffer.concat(pieces).toString('utf8'))
}

const send = (response: ServerResponse, status: number, html: string) => {
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' }).end(html)
}

const isRefusal = (error: unknown): error is RateLimiterRes => error instanceof RateLimiterRes

type SignInFormParts = { provider: () => Provider; sql: Sql; origin: string; browsers: KnownBrowsers }

export const createSignInForm = ({ provider, sql, origin, browsers }: SignInFormParts): SignInForm => {
  // Failures only: a success gives its point back.
  const byPlace = new RateLimiterMemory({ points: 20, duration: 15 * 60 })
  const addressKey = createAddressKeys()
  // From browsers that are not known for it; those that are have as many each.
  const byAccount = new RateLimiterMemory({ points: 50, duration: 60 * 60 })

  const attempt = async (request: IncomingMessage, place: string, email: string, password: string) => {
    await byPlace.consume(place)
    const account = await accountOf(sql, email)
    const counted = account && ((await browsers.find(request, account)) ?? account)
    if (counted !== undefined) await byAccount.consume(counted)
    const userId = await findByPassword(sql, email, password)
    if (userId !== undefined) {
      await byPlace.reward(place)
      if (counted !== undefined) await byAccount.reward(counted)
    }
    return userId
  }

  return async ({ request, response, address }, uid) => {
    const action = `${issuerPath}/interaction/${uid}`
    // Whose browser this is, its cookie says; the path has to say the same, or somebody else wrote the link.
    const details = await provider().interactionDetails(request, response)
    if (details.uid !== uid || details.prompt.name !== 'login') throw new Error('another interaction')
    if (request.method === 'GET' || request.method === 'HEAD') return send(response, 200, signInPage(action))
    if (request.headers.origin !== undefined && request.headers.origin !== origin) throw new Error('another origin')
    const form = await readForm(request)
    const email = form?.get('email')?.trim() ?? ''
    const password = form?.get('password') ?? ''
    const isUsable = email !== '' && email.length <= 254 && password !== '' && password.length <= longestPassword
    if (request.method !== 'POST' || !isUsable) {
      return send(response, 400, signInPage(action, { complaint: 'Both an e-mail address and a password are needed.' }))
    }
    try {
      const accountId = await attempt(request, addressKey(address), email, password)
      if (accountId === undefined) {
        const complaint = 'This is not the right e-mail address and password.'
        return send(response, 401, signInPage(action, { email, complaint }))
      }
      await browsers.mark(response, accountId)
      await provider().interactionFinished(request, response, { login: { accountId, remember: true } })
    } catch (error) {
      if (!isRefusal(error)) throw error
      response.setHeader('retry-after', Math.ceil(error.msBeforeNext / 1000))
      send(response, 429, signInPage(action, { email, complaint: 'Too many attempts. Wait a while, then try again.' }))
    }
  }
}

const accountOf = async (sql: Sql, email: string): Promise<string | undefined> => {
  const [row] = await sql<
    { id: string }[]
  >`select id from users where lower(email) = lower(${email.replaceAll('\0', '')})`
  return row?.id
}
