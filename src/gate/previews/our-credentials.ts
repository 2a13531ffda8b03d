// Finds texts of a call that contain a credential of this server: plain, in another letter case, percent-encoded, or in Base64.
// Such texts never go into a sandbox. A caller that disguises a credential on purpose is not stopped: this caller could also give
// the credential away.
import type { IncomingMessage } from 'node:http'
import type { Access, Credential } from '#src/wire/access.ts'
import { decodedFully } from '../query.ts'
import { authKey } from '../target.ts'

const apiKey = /dtn_[0-9a-z]/i
/** A credential with fewer characters may be in a text by chance. So only a text that equals such a credential counts. */
const leastPart = 8

type CarriesOurs = (text: string) => boolean

/**
 * Decodes words that may contain Base64, as in `Authorization: Basic`. The beginning of the Base64 text is unknown, and its
 * letters are decoded in groups of four, so all four offsets are tried.
 */
const decodedWords = (text: string): string =>
  (text.match(/[\w+/-]{8,}/g) ?? [])
    .flatMap((word) => [0, 1, 2, 3].map((from) => Buffer.from(word.slice(from), 'base64').toString('latin1')))
    .join('\n')

/**
 * Returns a function that tells whether a text contains an API key, or one of the call's credentials (`used`). A bearer token counts
 * only if it opened the preview or `isBearerOurs` is true. Any other bearer token is for the server in the sandbox.
 */
export const findOurs = (used: readonly Credential[], { openedBy, isBearerOurs }: Access): CarriesOurs => {
  const isOurs = ({ kind }: Credential) => kind !== 'bearer' || isBearerOurs || openedBy === 'bearer'
  const secrets = used
    .filter(isOurs)
    .flatMap((credential) => ('token' in credential ? [credential.token.toLowerCase()] : []))
  const isIn = (text: string) => {
    const lower = text.toLowerCase()
    return secrets.some((secret) => (secret.length < leastPart ? lower === secret : lower.includes(secret)))
  }
  return (text) => {
    const plain = decodedFully(text)
    const words = decodedWords(plain)
    return apiKey.test(plain) || isIn(plain) || apiKey.test(words) || isIn(words)
  }
}

/** Whether a query field with this name contains a preview token. The name may be encoded and in any letter case. */
const isAuthKey = (name: string) => decodedFully(name).toLowerCase() === authKey.toLowerCase()

/** Returns a query without the fields that carry a credential. */
export const openQuery = (query: string, carriesOurs: CarriesOurs): string => {
  const fields = query.replace(/^\?/, '').split('&')
  const open = fields.filter((field) => !isAuthKey(field.split('=', 1)[0]!) && !carriesOurs(field))
  return open.length === fields.length ? query : open.length === 0 ? '' : `?${open.join('&')}`
}

/**
 * Returns the address of a page, or only its origin if the address contains a credential. Undefined if the origin contains a
 * credential too.
 */
export const openReferer = (referer: string | undefined, carriesOurs: CarriesOurs): string | undefined => {
  if (referer === undefined) return undefined
  const isOpen = (text: string) =>
    !carriesOurs(text) && !decodedFully(text).toLowerCase().includes(authKey.toLowerCase())
  if (isOpen(referer)) return referer
  const origin = URL.canParse(referer) ? new URL(referer).origin : 'null'
  return origin !== 'null' && isOpen(origin) ? `${origin}/` : undefined
}

/**
 * Returns the subprotocols of a WebSocket, without those that carry a credential: some clients send a key as
 * subprotocol.
 */
export const openProtocols = ({ headers }: IncomingMessage, carriesOurs: CarriesOurs): string | undefined =>
  headers['sec-websocket-protocol']
    ?.split(',')
    .map((protocol) => protocol.trim())
    .filter((protocol) => protocol !== '' && !carriesOurs(protocol))
    .join(', ')
