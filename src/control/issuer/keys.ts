// What our own issuer signs with: RSA keys made here, encrypted in the database, replaced every month. An old one is still told
// for as long as a token that it signed may live.
import { randomBytes, randomUUID } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import type { Clock } from '#src/kit/clock.ts'
import type { Database, Transaction } from '../storage/database.ts'
import type { Encryption } from '../storage/encryption.ts'

const day = 24 * 60 * 60 * 1000
const replacedAfter = 30 * day
const toldFor = 2 * day
const lock = 7_305_523

export type IssuerKeys = {
  /** Private ones, the newest first: it signs. */
  signing: JWK[]
  cookie: string
}

type KeyParts = { database: Database; encryption: Encryption; clock: Clock }

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

/** Reads the keys, and makes and replaces them where it is time. Several processes may ask at once. */
export const ensureKeys = async (parts: KeyParts): Promise<IssuerKeys> =>
  await parts.database.transaction(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${lock})`
    const rows = await transaction<Row[]>`select * from issuer_keys order by created_at desc, id`
    const signing = rows.filter(({ kind }) => kind === 'signing')
    let cookie = rows.find(({ kind }) => kind === 'cookie')
    const now = parts.clock.now().getTime()
    if (signing[0] === undefined || now - signing[0].created_at.getTime() >= replacedAfter) {
      const id = randomUUID()
      signing.unshift(await insert(transaction, parts, 'signing', id, await newSigningKey(id)))
    }
    // A key signs until the next one is there, and its last tokens end soon after.
    const over = signing.filter((_, index) => index > 0 && now - signing[index - 1]!.created_at.getTime() >= toldFor)
    for (const { id } of over) await transaction`delete from issuer_keys where id = ${id}`
    cookie ??= await insert(transaction, parts, 'cookie', randomUUID(), randomBytes(32).toString('base64url'))
    const read = ({ id, secret }: Row) => parts.encryption.decrypt(purposeOf(id), secret)
    return {
      signing: signing.filter((row) => !over.includes(row)).map((row) => JSON.parse(read(row)) as JWK),
      cookie: read(cookie),
    }
  })
