// A ticket says that control has let one call in: to which sandbox, of which organization, to do what, and until when. Control
// signs it with Ed25519. A gate holds only public keys, so a gate that is taken over can make no ticket.
//
//   v1.<key id>.<base64url of JSON>.<base64url of the signature of everything before the last dot>
import { createHash, type KeyObject, sign, verify } from 'node:crypto'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'

const exactly = { additionalProperties: false }
const Id = Type.String({ minLength: 1, maxLength: 64 })

/** `call`: one call of the toolbox, named by `digestOfCall`. `port`: a connection to this port inside the sandbox. */
const Allowed = Type.Union([
  Type.Object({ kind: Type.Literal('toolbox') }, exactly),
  Type.Object({ kind: Type.Literal('call'), digest: Type.String({ pattern: '^[\\w-]{43}$' }) }, exactly),
  Type.Object({ kind: Type.Literal('port'), port: Type.Integer({ minimum: 1, maximum: 65_535 }) }, exactly),
])

const Ticket = Type.Object(
  {
    sandboxId: Id,
    organizationId: Id,
    allowed: Allowed,
    /** Milliseconds since 1970 by the clock of control. */
    expiresAt: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  },
  exactly,
)

export type Allowed = Static<typeof Allowed>
export type Ticket = Static<typeof Ticket>

/** `publicKey`: DER of a SubjectPublicKeyInfo, as base64. */
export type TicketKey = { id: string; publicKey: string }

/** The answer of `GET /proxy/ticket-keys`: the keys whose tickets count now. A gate drops all others. */
export type TicketKeys = { keys: TicketKey[] }

/** How long a ticket is good. Milliseconds. */
export const ticketLastsMs = 30_000

/** How far the clocks of control and of a gate may be apart. Milliseconds. */
export const ticketSkewMs = 5000

const longest = 2048
const form = /^(v1\.([\w-]{1,64})\.([\w-]+))\.([\w-]{86})$/
const isTicket = Compile(Ticket)

export const makeTicket = (ticket: Ticket, { id, privateKey }: { id: string; privateKey: KeyObject }): string => {
  const signed = `v1.${id}.${Buffer.from(JSON.stringify(ticket)).toString('base64url')}`
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`
}

/** Whose key the text says that it was signed with. Undefined: it has not the form of a ticket. */
export const keyIdOf = (text: string): string | undefined => (text.length > longest ? undefined : form.exec(text)?.[2])

/** What was signed with this key; undefined for anything else. Whether it has expired is not judged here. */
export const readTicket = (text: string, publicKey: KeyObject): Ticket | undefined => {
  if (text.length > longest) return undefined
  const [, signed, , payload, signature] = form.exec(text) ?? []
  if (signed === undefined || payload === undefined || signature === undefined) return undefined
  const bytes = Buffer.from(signature, 'base64url')
  // The last letter has bits to spare: written otherwise, the same signature would have more than one text.
  if (bytes.toString('base64url') !== signature) return undefined
  if (!verify(null, Buffer.from(signed), publicKey, bytes)) return undefined
  const ticket = parsed(payload)
  return isTicket.Check(ticket) ? ticket : undefined
}

const parsed = (payload: string): unknown => {
  try {
    return JSON.parse(Buffer.from(payload, 'base64url').toString())
  } catch {
    return undefined
  }
}

/** A call by its method and its path below the sandbox, with the query: `GET`, `/files/download?path=%2Ftmp%2Fx`. */
export const digestOfCall = (method: string, path: string): string =>
  createHash('sha256').update(`${method} ${path}`).digest('base64url')
