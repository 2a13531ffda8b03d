// What the issuer remembers between two requests, as oidc-provider asks for it: one table for all its kinds of records.
import { createHash } from 'node:crypto'
import { type Adapter, type AdapterPayload, errors } from 'oidc-provider'
import type { Database, Sql } from '../storage/database.ts'
import type { Encryption } from '../storage/encryption.ts'

const hash = (text: string) => createHash('sha256').update(text).digest('hex')

/** `undefined` stays so: the record has no such name. */
const hashed = (text: string | undefined): string | null => (text === undefined ? null : hash(text))

/** What lives on nothing but this: nobody waits longer than a session. */
const longestSeconds = 30 * 24 * 60 * 60

/** Of nobody's yet: signing in that was begun. Whoever begins them needs no credential. */
const mostAnonymous = 20_000

type Row = { id_hash: string; secret: string; consumed_at: Date | null }

/** Answers the class that oidc-provider makes its stores of. */
export const recordsIn = (
  { sql }: Pick<Database, 'sql'>,
  encryption: Encryption,
  most = mostAnonymous,
): ((model: string) => Adapter) => {
  const purposeOf = (model: string, idHash: string) => `issuer:${model}:${idHash}`

  const read = (model: string, row: Row | undefined): AdapterPayload | undefined => {
    if (row === undefined) return undefined
    const payload = JSON.parse(encryption.decrypt(purposeOf(model, row.id_hash), row.secret)) as AdapterPayload
    return row.consumed_at === null ? payload : { ...payload, consumed: row.consumed_at.getTime() / 1000 }
  }

  const findBy = async (model: string, column: 'id_hash' | 'uid_hash' | 'user_code_hash', text: string) => {
    const [row] = await sql<Row[]>`
      select id_hash, secret, consumed_at from issuer_records
      where model = ${model} and ${sql(column)} = ${hash(text)} and expires_at > now()`
    return read(model, row)
  }

  return (model) => ({
    upsert: async (id, payload, expiresIn) => {
      const idHash = hash(id)
      const secret = encryption.encrypt(purposeOf(model, idHash), JSON.stringify(payload))
      const { grantId, uid, userCode, accountId } = payload
      const seconds = Math.min(expiresIn || longestSeconds, longestSeconds)
      const written = await sql`
        insert into issuer_records (
          model, id_hash, secret, grant_hash, uid_hash, user_code_hash, account_id, expires_at)
        select ${model}, ${idHash}, ${secret}, ${hashed(grantId)}, ${hashed(uid)}, ${hashed(userCode)},
               ${accountId ?? null}, now() + ${seconds} * interval '1 second'
        where ${accountId !== undefined}
          or (select count(*) from issuer_records where account_id is null) < ${most}
          or exists (select from issuer_records where model = ${model} and id_hash = ${idHash})
        on conflict (model, id_hash) do update set secret = excluded.secret, grant_hash = excluded.grant_hash,
          uid_hash = excluded.uid_hash, user_code_hash = excluded.user_code_hash, account_id = excluded.account_id,
          expires_at = excluded.expires_at`
      if (written.count === 0) throw new errors.TemporarilyUnavailable('too many sign-ins are under way')
    },
    find: (id) => findBy(model, 'id_hash', id),
    findByUid: (uid) => findBy(model, 'uid_hash', uid),
    findByUserCode: (userCode) => findBy(model, 'user_code_hash', userCode),
    consume: async (id) => {
      // Of two who come with the same code at once, one is refused.
      const consumed = await sql`
        update issuer_records set consumed_at = now()
        where model = ${model} and id_hash = ${hash(id)} and consumed_at is null`
      if (consumed.count === 0) throw new errors.InvalidGrant('already consumed')
    },
    destroy: async (id) => {
      await sql`delete from issuer_records where model = ${model} and id_hash = ${hash(id)}`
    },
    revokeByGrantId: async (grantId) => {
      await sql`delete from issuer_records where grant_hash = ${hash(grantId)}`
    },
  })
}

export const sweepRecords = async (sql: Sql): Promise<void> => {
  await sql`delete from issuer_records where expires_at <= now()`
}

/** Everything by which this user is signed in by our own issuer. */
export const endSessions = async (sql: Sql, userId: string): Promise<void> => {
  await sql`delete from issuer_records where account_id = ${userId}`
}
