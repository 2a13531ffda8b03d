// Shows and reads the sign-in form, or signs a user in with a one-time link.
// Text, status and duration of every answer are equal for existing and missing accounts.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Interaction, Provider } from 'oidc-provider'
import { tellOfLinkSignIn } from '../audit/page-write.ts'
import type { Origin } from '../audit/subject.ts'
import { hashKey } from '../auth/secret.ts'
import type { Parts } from '../parts.ts'
import type { SharedCounters } from '../rate-limits/shared-counters.ts'
import { issuerPath } from './address.ts'
import type { KnownBrowsers } from './known-browsers.ts'
import { signInPage } from './pages.ts'
import { findAccount, longestPassword, signsInTo } from './passwords.ts'
import { createSignInAttempts, TooManyAttempts } from './sign-in-attempts.ts'
import { consumeSignInLink, linkParameter } from './sign-in-links.ts'

const mostFormBytes = 4096

export type Visit = { request: IncomingMessage; response: ServerResponse; address: string; from: Origin }

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

type SignInFormParts = Pick<Parts, 'database' | 'clock'> & {
  counters: SharedCounters
  provider: () => Promise<Provider>
  origin: string
  browsers: KnownBrowsers
}

const badLink =
  'This link was already used, or has expired. Ask the operator for a new link, or sign in with your password.'

export const createSignInForm = ({
  provider,
  database,
  clock,
  origin,
  browsers,
  counters,
}: SignInFormParts): SignInForm => {
  const countAttempt = createSignInAttempts(counters)

  const attempt = async ({ request, address }: Visit, email: string, password: string) => {
    const [browser, account] = await Promise.all([browsers.find(request), findAccount(database.sql, email)])
    const known = browser !== undefined && browser.account === account?.id ? browser.id : undefined
    const giveBack = await countAttempt({ address, name: email.toLowerCase(), browser: known })
    const userId = await signsInTo(account, password, known === undefined ? 'other' : 'known')
    if (userId !== undefined) await giveBack()
    return userId
  }

  const attemptByLink = async ({ address, from }: Visit, token: string): Promise<string | undefined> => {
    const giveBack = await countAttempt({ address, name: `link ${hashKey(token)}`, browser: undefined })
    const now = clock.now()
    const userId = await database.transaction(async (transaction) => {
      const user = await consumeSignInLink(transaction, token, now)
      if (user !== undefined) await tellOfLinkSignIn(transaction, { at: now, user, from })
      return user?.id
    })
    if (userId !== undefined) await giveBack()
    return userId
  }

  /**
   * Ends another user's session in this browser. oidc-provider itself would do this with a script, but our pages run no
   * scripts.
   */
  const endOtherSession = async (details: Interaction, accountId: string) => {
    const { session } = details
    if (session === undefined || session.accountId === accountId) return
    const other = await (await provider()).Session.findByUid(session.uid)
    await other?.destroy()
    delete details.session
    await details.save(details.exp - Math.floor(Date.now() / 1000))
  }

  const finish = async ({ request, response }: Visit, details: Interaction, accountId: string) => {
    await browsers.mark(response, accountId)
    await endOtherSession(details, accountId)
    await (await provider()).interactionFinished(request, response, { login: { accountId, remember: true } })
  }

  return async (visit, uid) => {
    const { request, response } = visit
    const action = `${issuerPath}/interaction/${uid}`
    // The cookie has the id of the sign-in that this browser has begun. A sign-in that somebody else has begun is refused.
    const details = await (await provider()).interactionDetails(request, response)
    if (details.uid !== uid || details.prompt.name !== 'login') throw new Error('another interaction')
    const refuse = (status: number, complaint: string, email?: string) =>
      send(response, status, signInPage(action, { complaint, ...(email === undefined ? {} : { email }) }))

    /**
     * Signs in the user that `attempt` returns. If `attempt` returns no user, shows the form again with `complaint`.
     */
    const answer = async (attempt: () => Promise<string | undefined>, complaint: string, email?: string) => {
      try {
        const accountId = await attempt()
        if (accountId === undefined) return refuse(401, complaint, email)
        await finish(visit, details, accountId)
      } catch (error) {
        if (!(error instanceof TooManyAttempts)) throw error
        response.setHeader('retry-after', error.retryAfterSeconds)
        refuse(429, 'Too many attempts. Wait a while, then try again.', email)
      }
    }

    const link = details.params[linkParameter]
    if (request.method === 'GET' && typeof link === 'string')
      return await answer(() => attemptByLink(visit, link), badLink)
    if (request.method === 'GET' || request.method === 'HEAD') return send(response, 200, signInPage(action))
    if (request.headers.origin !== undefined && request.headers.origin !== origin) throw new Error('another origin')
    const form = await readForm(request)
    const email = form?.get('email')?.trim() ?? ''
    const password = form?.get('password') ?? ''
    // PostgreSQL cannot store a text that contains NUL.
    const isUsable =
      email !== '' &&
      !email.includes('\0') &&
      email.length <= 254 &&
      password !== '' &&
      password.length <= longestPassword
    if (request.method !== 'POST' || !isUsable) {
      return refuse(400, 'Enter an e-mail address and a password.')
    }
    await answer(() => attempt(visit, email, password), 'The e-mail address or the password is wrong.', email)
  }
}
