// Known browsers: browsers in which somebody has signed in to an account before. Wrong passwords from known browsers are
// counted separately. Attackers who try passwords therefore cannot lock out the owner of the account
// (https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies).
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { jwtVerify, SignJWT } from 'jose'
import type { Clock } from '#src/kit/clock.ts'
import { issuerPath } from './address.ts'

const cookieName = 'alcove_browser'
const inCookies = new RegExp(`(?:^|;) *${cookieName}=([\\w.-]{1,1000})(?:;|$)`)
const audience = 'alcove:browser'
const seconds = 365 * 24 * 60 * 60

export type KnownBrowser = {
  /** Id of the browser, stored in its cookie. Each sign-in gives the browser a new id. */
  id: string
  /** Id of the account to which somebody has signed in with this browser. */
  account: string
}

export type KnownBrowsers = {
  /**
   * Finds the known browser (in which somebody has signed in before) that sent the request. Reads only the cookie, so the
   * result reveals no account.
   */
  find: (request: IncomingMessage) => Promise<KnownBrowser | undefined>
  /**
   * Sets the cookie that makes the browser known for this account, so that wrong passwords from it are counted separately. Call
   * this after a sign-in.
   */
  mark: (response: ServerResponse, account: string) => Promise<void>
}

type KnownBrowserParts = { secret: string; clock: Clock; isSecure: boolean }

export const createKnownBrowsers = ({ secret, clock, isSecure }: KnownBrowserParts): KnownBrowsers => {
  const key = new TextEncoder().encode(secret)
  return {
    find: async (request) => {
      const [, token] = inCookies.exec(request.headers.cookie ?? '') ?? []
      if (token === undefined) return undefined
      const options = { audience, algorithms: ['HS256'], currentDate: clock.now() }
      const { jti: id, sub: account } = await jwtVerify(token, key, options).then(
        ({ payload }) => payload,
        () => ({ jti: undefined, sub: undefined }),
      )
      return id === undefined || account === undefined ? undefined : { id, account }
    },
    mark: async (response, account) => {
      const now = Math.floor(clock.now().getTime() / 1000)
      const token = await new SignJWT()
        .setProtectedHeader({ alg: 'HS256' })
        .setAudience(audience)
        .setSubject(account)
        .setJti(randomUUID())
        .setExpirationTime(now + seconds)
        .sign(key)
      const attributes = `path=${issuerPath}; max-age=${seconds}; httponly; samesite=lax${isSecure ? '; secure' : ''}`
      response.appendHeader('set-cookie', `${cookieName}=${token}; ${attributes}`)
    },
  }
}
