// Reads the claims of a verified token about a person. Only the issuer of a token is proven: the texts in the token may come
// from anybody.
import type { JWTPayload } from 'jose'

export type Claims = {
  issuer: string
  subject: string
  /**
   * The e-mail address. Absent if the issuer does not send one. Without an address, a new person cannot become a user.
   */
  email: string | undefined
  emailVerified: boolean
  name: string
  /** When the token was issued. If this is unknown, the stored name and e-mail address of the user stay. */
  saidAt: Date | undefined
  expiresAt: Date
}

const longestName = 255
const longestSubject = 255

export const readText = (value: unknown, longest: number): string | undefined => {
  if (typeof value !== 'string') return undefined
  // Removes control characters, invisible characters and line breaks. PostgreSQL cannot store the control character NUL.
  const text = value
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
    .trim()
  return text === '' ? undefined : text.slice(0, longest).toWellFormed()
}

/** Reads the subject. A subject is compared as it is and never cleaned: two different subjects are two people. */
const readSubject = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= longestSubject && !/[\p{Cc}\p{Cs}]/u.test(value)
    ? value
    : undefined

export const readEmail = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= 254 && /^[^\s@<>"\p{C}]+@[^\s@<>"\p{C}]+$/u.test(value)
    ? value
    : undefined

const dateOf = (seconds: number | undefined): Date | undefined => {
  const date = seconds === undefined ? undefined : new Date(seconds * 1000)
  return date === undefined || Number.isNaN(date.getTime()) ? undefined : date
}

/** Reads the claims of a token. Returns `undefined` if the subject or the expiry is missing or invalid. */
export const readClaims = (issuer: string, payload: JWTPayload): Claims | undefined => {
  // Some issuers write the user's id into `uid`, the client's id into `cid`, and the e-mail address into `sub`.
  const isByUid = payload['cid'] !== undefined && payload['uid'] !== undefined
  const subject = readSubject(isByUid ? payload['uid'] : payload.sub)
  const expiresAt = dateOf(payload.exp)
  if (subject === undefined || expiresAt === undefined) return undefined
  const email = readEmail(isByUid ? payload.sub : payload['email'])
  const names = [payload['name'], payload['username'], payload['preferred_username'], email]
  const name = names.map((value) => readText(value, longestName)).find((text) => text !== undefined)
  return {
    issuer,
    subject,
    email,
    emailVerified: payload['email_verified'] === true,
    name: name ?? subject,
    saidAt: dateOf(payload.iat),
    expiresAt,
  }
}
