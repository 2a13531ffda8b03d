// Stores the data of oidc-provider, such as sessions and codes, in one table of the database.
import { type Adapter, type AdapterPayload, errors } from 'oidc-provider'
import { hashKey } from '../auth/secret.ts'
import type { Database } from '../storage/database.ts'
import type { Encryption } from '../storage/encryption.ts'
import { sourceOfRecords } from './record-source.ts'

/** Hashes a field of a record, such as `grantId`, for its column in the database. Null if the field is absent. */
const hashed = (text: string | undefined): string | null => (text === undefined ? null : hashKey(text))

/** Longest lifetime of a record, in seconds: 30 days. A record without an expiry gets this lifetime. */
const longestSeconds = 30 * 24 * 60 * 60

/** Maximum number of sign-ins that are begun but not completed. Anybody can begin a sign-in, without a credential. */
const mostAnonymous = 20_000

/** Maximum size in bytes of what is stored for a sign-in that is not completed: four times the largest request. */
const mostAnonymousBytes = 16 * 1024

type Row = { id_hash: string; secret: string; consumed_at: Date | null }

/** Returns a function that makes a storage adapter for each kind of record of oidc-provider. */
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
      where model = ${model} and ${sql(column)} = ${hashKey(text)} and expires_at > now()`
    return read(model, row)
  }

  /**
   * Deletes the oldest begun sign-ins of the network that has begun the most. An attacker therefore causes no loss in other
   * networks.
   * The query is slow, so it deletes more rows than needed and runs less often.
   */
  const makeRoom = async () => {
    const [{ begun }] = await sql<[{ begun: number }]>`
      select count(*)::integer as begun from issuer_records where account_id is null`
    if (begun <= most) return
    await sql`
      with chosen as (
        select model, id_hash from (
          select model, id_hash, expires_at, row_number() over (partition by source order by expires_at desc) as place
          from issuer_records where account_id is null) counted
        order by place desc, expires_at
        limit ${begun - most + Math.floor(most / 20)})
      delete from issuer_records where (model, id_hash) in (
        select model, id_hash from issuer_records
        where account_id is null and (model, id_hash) in (select model, id_hash from chosen)
        for update skip locked)`
  }

  return (model) => ({
    upsert: async (id, payload, expiresIn) => {
      const idHash = hashKey(id)
      const { grantId, uid, userCode, accountId } = payload
      const isAnonymous = accountId === undefined
      const text = JSON.stringify(payload)
      if (isAnonymous && text.length > mostAnonymousBytes) throw new errors.InvalidRequest('this is too long')
      const secret = encryption.encrypt(purposeOf(model, idHash), text)
      const seconds = Math.min(expiresIn || longestSeconds, longestSeconds)
      await sql`
        insert into issuer_records (
          model, id_hash, secret, grant_hash, uid_hash, user_code_hash, account_id, source, expires_at)
        values (${model}, ${idHash}, ${secret}, ${hashed(grantId)}, ${hashed(uid)}, ${hashed(userCode)},
                ${accountId ?? null}, ${sourceOfRecords() ?? null}, now() + ${seconds} * interval '1 second')
        on conflict (model, id_hash) do update set secret = excluded.secret, grant_hash = excluded.grant_hash,
          uid_hash = excluded.uid_hash, user_code_hash = excluded.user_code_hash, account_id = excluded.account_id,
          expires_at = excluded.expires_at`
      if (isAnonymous) await makeRoom()
    },
    find: (id) => findBy(model, 'id_hash', id),
    findByUid: (uid) => findBy(model, 'uid_hash', uid),
    findByUserCode: (userCode) => findBy(model, 'user_code_hash', userCode),
    consume: async (id) => {
      // If two calls use a code at the same time, only one call updates the row, and the other call is refused.
      const consumed = await sql`
        update issuer_records set consumed_at = now()
        where model = ${model} and id_hash = ${hashKey(id)} and consumed_at is null`
      if (consumed.count === 0) throw new errors.InvalidGrant('already consumed')
    },
    destroy: async (id) => {
      await sql`delete from issuer_records where model = ${model} and id_hash = ${hashKey(id)}`
    },
    revokeByGrantId: async (grantId) => {
      await sql`delete from issuer_records where grant_hash = ${hashKey(grantId)}`
    },
  })
}
