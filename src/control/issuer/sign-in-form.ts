// Shows the sign-in form and reads it. Every answer (words, status, time) is equal, whether or not the account exists.
// sign-in-attempts.ts limits wrong passwords.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import type { Sql } from '../storage/database.ts'
import { issuerPath } from './address.ts'
import type { KnownBrowsers } from './known-browsers.ts'
import { signInPage } from './pages.ts'
import { findAccount, longestPassword, signsInTo } from './passwords.ts'
import { createSignInAttempts, TooManyAttempts } from './sign-in-attempts.ts'

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

type SignInFormParts = { provider: () => Promise<Provider>; sql: Sql; origin: string; browsers: KnownBrowsers }

export const createSignInForm = ({ provider, sql, origin, browsers }: SignInFormParts): SignInForm => {
  const countAttempt = createSignInAttempts()

  const attempt = async ({ request, address }: Visit, email: string, password: string) => {
    const [browser, account] = await Promise.all([browsers.find(request), findAccount(sql, email)])
    const known = browser !== undefined && browser.account === account?.id ? browser.id : undefined
    const giveBack = await countAttempt({ address, name: email.toLowerCase(), browser: known })
    const userId = await signsInTo(account, password, known === undefined ? 'other' : 'known')
    if (userId !== undefined) await giveBack()
    return userId
  }

  return async (visit, uid) => {
    const { request, response } = visit
    const action = `${issuerPath}/interaction/${uid}`
    // The cookie names the sign-in that this browser has begun. If the path names another sign-in, somebody else made
    // the link that the browser followed.
    const details = await (await provider()).interactionDetails(request, response)
    if (details.uid !== uid || details.prompt.name !== 'login') throw new Error('another interaction')
    if (request.method === 'GET' || request.method === 'HEAD') return send(response, 200, signInPage(action))
    if (request.headers.origin !== undefined && request.headers.origin !== origin) throw new Error('another origin')
    const form = await readForm(request)
    const email = form?.get('email')?.trim() ?? ''
    const password = form?.get('password') ?? ''
    // Input with a NUL is not usable, because PostgreSQL text cannot hold a NUL.
    const isUsable =
      email !== '' &&
      !email.includes('\0') &&
      email.length <= 254 &&
      password !== '' &&
      password.length <= longestPassword
    if (request.method !== 'POST' || !isUsable) {
      return send(response, 400, signInPage(action, { complaint: 'Both an e-mail address and a password are needed.' }))
    }
    try {
      const accountId = await attempt(visit, email, password)
      if (accountId === undefined) {
        const complaint = 'This is not the right e-mail address and password.'
        return send(response, 401, signInPage(action, { email, complaint }))
      }
      await browsers.mark(response, accountId)
      await (await provider()).interactionFinished(request, response, { login: { accountId, remember: true } })
    } catch (error) {
      if (!(error instanceof TooManyAttempts)) throw error
      response.setHeader('retry-after', error.retryAfterSeconds)
      send(response, 429, signInPage(action, { email, complaint: 'Too many attempts. Wait a while, then try again.' }))
    }
  }
}
