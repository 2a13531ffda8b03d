// A sign-in by an identity provider ends with a token in the page's address. An attacker could send a link with the attacker's own
// token, and the victim would work in the attacker's account. So the dashboard accepts a token only together with a cookie that
// contains the token's hash. The server sets this cookie at the sign-in.
import { sha256 } from '@noble/hashes/sha2.js'
import { base64url } from './base64url.ts'

const markName = 'alcove-sso-token'

const nameOf = (isSecure: boolean): string => (isSecure ? `__Host-${markName}` : markName)

/**
 * Whether the token comes from a sign-in in this browser. Such a sign-in has set a cookie with the token's hash. `cookies` is the
 * text of `document.cookie`.
 */
export const isOwnToken = (token: string, cookies: string, isSecure: boolean): boolean => {
  const mark = base64url(sha256(new TextEncoder().encode(token)))
  return cookies.split(';').some((cookie) => cookie.trim() === `${nameOf(isSecure)}=${mark}`)
}

/**
 * Returns a text that, assigned to `document.cookie`, removes the cookie that proves the sign-in in this browser. The dashboard
 * removes this cookie after its first use.
 */
export const withoutMark = (isSecure: boolean): string =>
  `${nameOf(isSecure)}=; Path=/; Max-Age=0; SameSite=Lax${isSecure ? '; Secure' : ''}`
