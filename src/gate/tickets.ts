// Checks the tickets of calls (src/wire/ticket.ts). A signature is verified once per ticket. If the gate does not know the key of
// a ticket, it asks control for control's keys again. Keys that control no longer lists are invalid.
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { Logger } from '#src/kit/log.ts'
import { Problem } from '#src/problems.ts'
import {
  type Allowed,
  digestOfCall,
  keyIdOf,
  readTicket,
  type Ticket,
  type TicketKey,
  ticketLastsMs,
  ticketSkewMs,
} from '#src/wire/ticket.ts'

/** What a caller wants to do with a ticket: call the toolbox of a sandbox, or connect to a port of the sandbox. */
export type Need = { sandboxId: string } & ({ method: string; path: string } | { port: number })

const keptTickets = 4096
/** Minimum time in ms between two questions to control for control's keys, however many tickets with unknown keys come. */
const askEveryMs = 1000

type TicketsParts = {
  /** Asks control for its keys. Throws a Problem if control does not answer. */
  listKeys: () => Promise<readonly TicketKey[]>
  log: Logger
}

const refused = (cause: string, code: 'unauthorized' | 'forbidden' = 'unauthorized') =>
  new Problem(code, undefined, { cause })

const isEnough = (allowed: Allowed, need: Need): boolean => {
  if ('port' in need) return allowed.kind === 'port' && allowed.port === need.port
  if (allowed.kind === 'call') return allowed.digest === digestOfCall(need.method, need.path)
  return allowed.kind === 'toolbox'
}

export class TicketChecks {
  readonly #parts: TicketsParts
  #keys: ReadonlyMap<string, KeyObject> = new Map()
  #askedAt = Number.NEGATIVE_INFINITY
  #asking: Promise<void> | undefined
  /** Tickets whose signature was verified, by their text. */
  readonly #read = new Map<string, Ticket>()

  constructor(parts: TicketsParts) {
    this.#parts = parts
  }

  /** Checks a ticket. Throws a refusal if the ticket is invalid, expired, or does not allow `need`. */
  async check(text: string | undefined, need: Need): Promise<Ticket> {
    try {
      const ticket = (text !== undefined && this.#read.get(text)) || (await this.#readAnew(text))
      this.#judge(ticket, need)
      return ticket
    } catch (error) {
      // A refused ticket is worth a warning: either control and the gate disagree, or the ticket is forged.
      if (error instanceof Problem && error.status < 500) {
        this.#parts.log.warn({ cause: error.cause, sandboxId: need.sandboxId }, 'a call is refused for its ticket')
      }
      throw error
    }
  }

  /** Verifies a ticket's signature before a call brings the ticket, so that the call need not wait for the verification. */
  readAhead(text: string): void {
    if (!this.#read.has(text)) this.#readAnew(text).catch(() => {})
  }

  /** Asks control for its keys. If such a question is pending already, waits for its answer. */
  renewKeys(): Promise<void> {
    this.#askedAt = performance.now()
    this.#asking ??= this.#askForKeys().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #askForKeys(): Promise<void> {
    try {
      const keys = await this.#parts.listKeys()
      this.#keys = new Map(keys.map(({ id, publicKey }) => [id, publicKeyFrom(publicKey)]))
      this.#read.clear()
    } catch (error) {
      this.#askedAt = Number.NEGATIVE_INFINITY
      throw error
    }
  }

  async #readAnew(text: string | undefined): Promise<Ticket> {
    if (text === undefined) throw refused('the call has no ticket')
    const keyId = keyIdOf(text)
    if (keyId === undefined) throw refused('the ticket has not the form of one')
    const ticket = readTicket(text, await this.#keyOf(keyId))
    if (ticket === undefined) throw refused('the ticket was not signed by control')
    this.#read.set(text, ticket)
    if (this.#read.size > keptTickets) this.#read.delete(this.#read.keys().next().value!)
    return ticket
  }

  async #keyOf(id: string): Promise<KeyObject> {
    const known = this.#keys.get(id)
    if (known !== undefined) return known
    if (this.#asking !== undefined || performance.now() - this.#askedAt >= askEveryMs) await this.renewKeys()
    const key = this.#keys.get(id)
    if (key === undefined) throw refused('the ticket is signed with a key that control does not name')
    return key
  }

  #judge({ sandboxId, allowed, expiresAt }: Ticket, need: Need): void {
    if (sandboxId !== need.sandboxId) throw refused('the ticket is for another sandbox')
    const leftMs = expiresAt - Date.now()
    if (leftMs < -ticketSkewMs) throw refused('the ticket has expired')
    if (leftMs > ticketLastsMs + ticketSkewMs) throw refused('the ticket is from the future: compare the clocks')
    if (!isEnough(allowed, need)) throw refused('the ticket allows less than this', 'forbidden')
  }
}

/** Parses a public key. Throws a Problem if the text is not a public key. */
const publicKeyFrom = (text: string): KeyObject => {
  try {
    return createPublicKey({ key: Buffer.from(text, 'base64'), type: 'spki', format: 'der' })
  } catch (cause) {
    throw new Problem('unavailable', 'The control service does not answer; try again.', { cause })
  }
}
