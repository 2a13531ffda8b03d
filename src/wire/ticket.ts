// A ticket says that control allows one call: in which sandbox, what the call may do, and until when. Control signs the ticket with
// an Ed25519 key. A gate has only the public key, so an attacker who controls a gate cannot make tickets. The form:
// v1.<key id>.<base64url of JSON>.<base64url of the signature of everything before the last dot>
import { createHash, type KeyObject, sign, verify } from 'node:crypto'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'

const exactly = { additionalProperties: false }
const Id = Type.String({ minLength: 1, maxLength: 64 })

/**
 * What the ticket allows. `toolbox`: any toolbox call. `call`: one toolbox call, named by `digestOfCall`. `port`: this
 * port inside the sandbox.
 */
const Allowed = Type.Union([
  Type.Object({ kind: Type.Literal('toolbox') }, exactly),
  Type.Object({ kind: Type.Literal('call'), digest: Type.String({ pattern: '^[\\w-]{43}$' }) }, exactly),
  Type.Object({ kind: Type.Literal('port'), port: Type.Integer({ minimum: 1, maximum: 65_535 }) }, exactly),
])

const Ticket = Type.Object(
  {
    sandboxId: Id,
    organizationId: Id,
    /**
     * Address at which the sandbox's runner listens on its machine. Absent: there is no runner, or its address is too long for a
     * ticket.
     */
    runnerAddress: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    /** The gate of the sandbox's host. No other gate may accept the call. Absent: a gate of the server's machine. */
    gateId: Type.Optional(Id),
    allowed: Allowed,
    /** When the ticket expires, in milliseconds since 1970 by control's clock. */
    expiresAt: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  },
  exactly,
)

export type Allowed = Static<typeof Allowed>
export type Ticket = Static<typeof Ticket>

/** A public key for tickets. `publicKey`: DER of a SubjectPublicKeyInfo, as base64. */
export type TicketKey = { id: string; publicKey: string }

/**
 * The answer of `GET /proxy/ticket-keys`: the keys that are valid now. A gate that gets this answer forgets all keys that are not
 * in it.
 */
export type TicketKeys = { keys: TicketKey[] }

/** How long a ticket is valid, in milliseconds. */
export const ticketLastsMs = 30_000

/** Largest allowed difference between control's clock and a gate's clock, in milliseconds. */
export const ticketSkewMs = 5000

const longest = 2048
const form = /^(v1\.([\w-]{1,64})\.([\w-]+))\.([\w-]{86})$/
const isTicket = Compile(Ticket)

export const makeTicket = (ticket: Ticket, { id, privateKey }: { id: string; privateKey: KeyObject }): string => {
  const signed = `v1.${id}.${Buffer.from(JSON.stringify(ticket)).toString('base64url')}`
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`
}

/** Returns the key id in a ticket, without a check of the signature. Undefined: the text is no ticket. */
export const keyIdOf = (text: string): string | undefined => (text.length > longest ? undefined : form.exec(text)?.[2])

/**
 * Returns the content of the ticket if this key signed it; otherwise undefined. The caller must check whether the
 * ticket has expired.
 */
export const readTicket = (text: string, publicKey: KeyObject): Ticket | undefined => {
  if (text.length > longest) return undefined
  const [, signed, , payload, signature] = form.exec(text) ?? []
  if (signed === undefined || payload === undefined || signature === undefined) return undefined
  const bytes = Buffer.from(signature, 'base64url')
  // The last base64url letter has bits that decoding ignores. Without this check, several different texts would be the
  // same valid ticket.
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

/**
 * Returns a digest of one toolbox call, from its method and its path with query below the sandbox, such as
 * `/files/download?path=%2Ftmp%2Fx`.
 */
export const digestOfCall = (method: string, path: string): string =>
  createHash('sha256').update(`${method} ${path}`).digest('base64url')
