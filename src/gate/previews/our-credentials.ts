// Tells which texts of a call carry a credential of this server, in any form that browsers and clients give it by themselves: as it is,
// in other letters, percent-encoded, in Base64. Nothing of that goes into a sandbox. A caller who disguises a credential on purpose
// can give it away in any case.
// Known credentials are the ones this call came with, and everything that has the form of an API key.
import type { IncomingMessage } from 'node:http'
import type { Access, Credential } from '#src/wire/access.ts'
import { decodedFully } from '../query.ts'
import { authKey } from '../target.ts'

const apiKey = /dtn_[0-9a-z]/i
/** A shorter one could stand in any text by accident: only the whole text is compared with it. */
const leastPart = 8

type CarriesOurs = (text: string) => boolean

/** Words that may be Base64, as in `Authorization: Basic`, or may end in it, as a path does: it goes by groups of four letters. */
const decodedWords = (text: string): string =>
  (text.match(/[\w+/-]{8,}/g) ?? [])
    .flatMap((word) => [0, 1, 2, 3].map((from) => Buffer.from(word.slice(from), 'base64').toString('latin1')))
    .join('\n')

/** `used`: the credentials of the call; `isBearerOurs`: a bearer among them is not the server's inside. */
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

/** The field in which a preview takes its token, however its name is written. */
const isAuthKey = (name: string) => decodedFully(name).toLowerCase() === authKey.toLowerCase()

/** A query without the fields that carry a credential. */
export const openQuery = (query: string, carriesOurs: CarriesOurs): string => {
  const fields = query.replace(/^\?/, '').split('&')
  const open = fields.filter((field) => !isAuthKey(field.split('=', 1)[0]!) && !carriesOurs(field))
  return open.length === fields.length ? query : open.length === 0 ? '' : `?${open.join('&')}`
}

/** A page's address; of one that carries a credential, or cannot be read, the origin at most. */
export const openReferer = (referer: string | undefined, carriesOurs: CarriesOurs): string | undefined => {
  if (referer === undefined) return undefined
  const isOpen = (text: string) =>
    !carriesOurs(text) && !decodedFully(text).toLowerCase().includes(authKey.toLowerCase())
  if (isOpen(referer)) return referer
  const origin = URL.canParse(referer) ? new URL(referer).origin : 'null'
  return origin !== 'null' && isOpen(origin) ? `${origin}/` : undefined
}

/** Protocols that a WebSocket offers. Some clients hide a key among them. */
export const openProtocols = ({ headers }: IncomingMessage, carriesOurs: CarriesOurs): string | undefined =>
  headers['sec-websocket-protocol']
    ?.split(',')
    .map((protocol) => protocol.trim())
    .filter((protocol) => protocol !== '' && !carriesOurs(protocol))
    .join(', ')
