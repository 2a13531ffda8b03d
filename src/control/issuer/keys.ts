// The signing keys of our own issuer: RSA keys, encrypted in the database and replaced every month.
// The public part of an old key stays published while a token signed with it may be valid.
import { randomBytes, randomUUID } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import type { Clock } from '#src/kit/clock.ts'
import type { Logger } from '#src/kit/log.ts'
import type { Database, Transaction } from '../storage/database.ts'
import { type Encryption, UnreadableSecret } from '../storage/encryption.ts'

const day = 24 * 60 * 60 * 1000
const replacedAfter = 30 * day
const toldFor = 2 * day
const lock = 7_305_523

export type IssuerKeys = {
  /** Private signing keys, newest first. New tokens are signed with the first key. */
  signing: JWK[]
  cookie: string
}

type KeyParts = { database: Database; encryption: Encryption; clock: Clock; log: Logger }

type Row = { id: string; kind: 'signing' | 'cookie'; secret: string; created_at: Date }

const purposeOf = (id: string) => `issuer-key:${id}`

const newSigningKey = async (id: string): Promise<string> => {
  const { privateKey } = await generateKeyPair('RS256', { modulusLength: 2048, extractable: true })
  return JSON.stringify({ ...(await exportJWK(privateKey)), kid: id, use: 'sig', alg: 'RS256' })
}

const insert = async (
  sql: Transaction,
  { encryption, clock }: KeyParts,
  kind: Row['kind'],
  id: string,
  text: string,
) => {
  const [row] = await sql<Row[]>`
    insert into issuer_keys (id, kind, secret, created_at)
    values (${id}, ${kind}, ${encryption.encrypt(purposeOf(id), text)}, ${clock.now()}) returning *`
  return row!
}

/**
 * Decrypts keys. Skips keys that were encrypted with another ALCOVE_ENCRYPTION_KEY, because another process may use
 * those keys.
 */
const readable = ({ encryption }: KeyParts, rows: readonly Row[]): { row: Row; text: string }[] =>
  rows.flatMap((row) => {
    try {
      return [{ row, text: encryption.decrypt(purposeOf(row.id), row.secret) }]
    } catch (error) {
      if (error instanceof UnreadableSecret) return []
      throw error
    }
  })

/** Logs that new keys are made because no stored key can be decrypted. New keys only make users sign in again. */
const sayUnreadable = ({ log }: KeyParts) =>
  log.error(
    'the keys of the issuer were encrypted under another ALCOVE_ENCRYPTION_KEY, and are made anew; what else was encrypted under it (secrets/encryption.key of the data directory) cannot be read without it',
  )

/**
 * Reads the signing keys from the database. Makes or replaces keys if necessary. Several processes may call this
 * function at the same time.
 */
export const ensureKeys = async (parts: KeyParts): Promise<IssuerKeys> =>
  await parts.database.transaction(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${lock})`
    const rows = await transaction<Row[]>`select * from issuer_keys order by created_at desc, id`
    const known = readable(parts, rows)
    if (known.length === 0 && rows.length > 0) sayUnreadable(parts)
    const now = parts.clock.now().getTime()
    const signing = known.filter(({ row }) => row.kind === 'signing')
    const make = async (kind: Row['kind'], id: string, text: string) => ({
      row: await insert(transaction, parts, kind, id, text),
      text,
    })
    if (signing[0] === undefined || now - signing[0].row.created_at.getTime() >= replacedAfter) {
      const id = randomUUID()
      signing.unshift(await make('signing', id, await newSigningKey(id)))
    }
    // A replaced key is deleted when the last token that was signed with it has expired.
    const over = signing.filter(
      (_, index) => index > 0 && now - signing[index - 1]!.row.created_at.getTime() >= toldFor,
    )
    for (const { row } of over) await transaction`delete from issuer_keys where id = ${row.id}`
    const cookie =
      known.find(({ row }) => row.kind === 'cookie') ??
      (await make('cookie', randomUUID(), randomBytes(32).toString('base64url')))
    return {
      signing: signing.filter((each) => !over.includes(each)).map(({ text }) => JSON.parse(text) as JWK),
      cookie: cookie.text,
    }
  })
