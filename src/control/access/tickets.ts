// Signs tickets (src/wire/ticket.ts). All control processes share the encrypted keys, which are replaced every month.
// Gates get the public part of a replaced key for one more day, because another process may still sign with that key.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import type { Parts } from '#src/control/parts.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { UnreadableSecret } from '#src/control/storage/encryption.ts'
import {
  keyIdOf,
  makeTicket,
  readTicket,
  type Ticket,
  type TicketKey,
  ticketLastsMs,
  ticketSkewMs,
} from '#src/wire/ticket.ts'

type TicketParts = Pick<Parts, 'database' | 'clock' | 'encryption' | 'log'>

type Row = { id: string; public_key: string; private_key: string; created_at: Date }

type Signing = { id: string; privateKey: KeyObject }

const hour = 60 * 60 * 1000
const day = 24 * hour
const replacedAfterMs = 30 * day
const toldForMs = day
const lock = 7_305_525
/** Milliseconds for which a ticket is reused. Signing is the most expensive part of an access answer. */
const givenForMs = ticketLastsMs / 2
const keptTickets = 4096

const purposeOf = (id: string) => `ticket-key:${id}`

export class Tickets {
  readonly #parts: TicketParts
  #signing: Signing
  #readAt: number
  readonly #given = new Map<string, { text: string; until: number }>()

  private constructor(parts: TicketParts, signing: Signing) {
    this.#parts = parts
    this.#signing = signing
    this.#readAt = parts.clock.now().getTime()
  }

  static async open(parts: TicketParts): Promise<Tickets> {
    return new Tickets(parts, await ensureKey(parts))
  }

  /** Returns a ticket with at least half of its lifetime left. */
  sign(ticket: Omit<Ticket, 'expiresAt'>): string {
    const now = this.#parts.clock.now().getTime()
    const { sandboxId, organizationId, runnerAddress, gateId, allowed } = ticket
    const what = JSON.stringify([this.#signing.id, sandboxId, organizationId, runnerAddress, gateId, allowed])
    const given = this.#given.get(what)
    // After the clock was set back, a stored ticket can be from the future. It would expire too late, so it is not reused.
    if (given !== undefined && given.until - givenForMs <= now && now < given.until) return given.text
    const text = makeTicket({ ...ticket, expiresAt: now + ticketLastsMs }, this.#signing)
    this.#given.delete(what)
    this.#given.set(what, { text, until: now + givenForMs })
    if (this.#given.size > keptTickets) this.#given.delete(this.#given.keys().next().value!)
    return text
  }

  /** Returns the content of a ticket that a gate shows. Undefined if no key of ours signed it, or if it has expired. */
  async read(text: string): Promise<Ticket | undefined> {
    const key = (await this.listKeys()).find(({ id }) => id === keyIdOf(text))
    const ticket = key && readTicket(text, publicKeyFrom(key.publicKey))
    // The clock of the process that signed the ticket may differ from this clock, so the ticket is accepted a little longer.
    const isOver = ticket !== undefined && ticket.expiresAt + ticketSkewMs < this.#parts.clock.now().getTime()
    return isOver ? undefined : ticket
  }

  /** Lists the public keys with which gates check tickets. Reads them at every call: another process may have made a new key. */
  async listKeys(): Promise<TicketKey[]> {
    const rows = await this.#parts.database.sql<Row[]>`select * from ticket_keys order by created_at desc, id`
    return rows
      .filter((row) => hasPublicKey(this.#parts, row))
      .map(({ id, public_key: publicKey }) => ({ id, publicKey }))
  }

  /** Replaces the signing key when it is a month old. Called every few seconds, but reads the database once an hour. */
  async renew(): Promise<void> {
    const now = this.#parts.clock.now().getTime()
    if (now - this.#readAt < hour) return
    this.#signing = await ensureKey(this.#parts)
    this.#readAt = now
  }
}

/**
 * Returns the newest signing key that this server can decrypt, or makes one. With the lock, concurrent processes get
 * the same key.
 */
const ensureKey = async (parts: TicketParts): Promise<Signing> =>
  await parts.database.transaction(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${lock})`
    const rows = await transaction<Row[]>`select * from ticket_keys order by created_at desc, id`
    const now = parts.clock.now()
    const ageOf = ({ created_at }: Row) => now.getTime() - created_at.getTime()
    const over = rows.filter((_, index) => index > 0 && ageOf(rows[index - 1]!) >= toldForMs)
    for (const { id } of over) await transaction`delete from ticket_keys where id = ${id}`
    for (const row of rows) {
      const isUsable = ageOf(row) < replacedAfterMs && hasPublicKey(parts, row)
      const text = isUsable ? findPrivateKey(parts, row) : undefined
      if (text !== undefined) return { id: row.id, privateKey: keyFrom(text) }
    }
    return await makeKey(transaction, parts, now)
  })

/** Whether the public key of a row can be read. A gate refuses all keys if one cannot be read. */
const hasPublicKey = ({ log }: Pick<TicketParts, 'log'>, { id, public_key }: Row): boolean => {
  try {
    publicKeyFrom(public_key)
    return true
  } catch (error) {
    log.warn({ keyId: id, err: error }, 'a public key for tickets cannot be read, and is left out')
    return false
  }
}

/** Decrypts the private key of a row. Undefined if another encryption key encrypted it. */
const findPrivateKey = ({ encryption, log }: TicketParts, { id, private_key }: Row): string | undefined => {
  try {
    return encryption.decrypt(purposeOf(id), private_key)
  } catch (error) {
    if (!(error instanceof UnreadableSecret)) throw error
    log.warn({ cause: error.message }, 'a key for tickets cannot be read, and another one is used')
    return undefined
  }
}

const makeKey = async (transaction: Transaction, { encryption }: TicketParts, now: Date): Promise<Signing> => {
  const id = randomUUID()
  const pair = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
  })
  const text = pair.privateKey.toString('base64')
  await transaction`
    insert into ticket_keys (id, public_key, private_key, created_at)
    values (${id}, ${pair.publicKey.toString('base64')}, ${encryption.encrypt(purposeOf(id), text)}, ${now})`
  return { id, privateKey: keyFrom(text) }
}

const publicKeyFrom = (text: string) =>
  createPublicKey({ key: Buffer.from(text, 'base64'), type: 'spki', format: 'der' })

const keyFrom = (text: string) => createPrivateKey({ key: Buffer.from(text, 'base64'), type: 'pkcs8', format: 'der' })
