// Idempotency keys: a create, fork or snapshot that is sent again, because its reply was lost, must not run twice.
import { createHash } from 'node:crypto'
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import { deleteBeyond } from '#src/control/storage/history.ts'
import { otherBody } from '#src/http/idempotency-key.ts'
import { Problem } from '#src/problems.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { findSandboxById } from '../record/store.ts'

const hoursKept = 24
/** Maximum number of keys in the database. Above this number, the organization with the most keys loses its oldest keys. */
const mostKept = 1_000_000

/** A request with the header Idempotency-Key. The client may repeat the request, which has an effect only once. */
type Once = { organizationId: string; key: string; requestHash: string }

export const onceFor = (organizationId: string, key: string, body: unknown): Once => ({
  organizationId,
  key,
  requestHash: createHash('sha256').update(JSON.stringify(body)).digest('hex'),
})

/** Locks a key until the transaction ends, so that simultaneous requests with the same key run one after the other. */
export const holdKey = async (transaction: Transaction, { organizationId, key }: Once): Promise<void> => {
  await transaction`select pg_advisory_xact_lock(hashtextextended(${`${organizationId} ${key}`}, 0))`
}

/**
 * Returns the sandbox of an earlier request with this key: a new sandbox, or the source of a new snapshot. `undefined`: no such
 * request.
 */
export const findMade = async (
  sql: Sql,
  { organizationId, key, requestHash }: Once,
): Promise<SandboxRow | undefined> => {
  const [known] = await sql<{ request_hash: string; sandbox_id: string }[]>`
    select request_hash, sandbox_id from idempotency_keys where organization_id = ${organizationId} and key = ${key}`
  if (known === undefined) return undefined
  if (known.request_hash !== requestHash) throw otherBody()
  const row = await findSandboxById(sql, known.sandbox_id)
  if (!row) throw new Problem('gone', 'The sandbox that was created with this Idempotency-Key no longer exists.')
  return row
}

export const rememberMade = async (
  transaction: Transaction,
  once: Once,
  sandboxId: string,
  now: Date,
): Promise<void> => {
  await transaction`
    insert into idempotency_keys (organization_id, key, request_hash, sandbox_id, created_at)
    values (${once.organizationId}, ${once.key}, ${once.requestHash}, ${sandboxId}, ${now})`
}

export const forgetOldKeys = async (sql: Sql, now: Date, most = mostKept): Promise<void> => {
  await sql`delete from idempotency_keys where created_at < ${new Date(now.getTime() - hoursKept * 3_600_000)}`
  await deleteBeyond(sql, 'idempotency_keys', most)
}

/** Deletes the idempotency keys of a deleted organization. */
export const forgetKeysOf = async (sql: Sql, organizationId: string): Promise<void> => {
  await sql`delete from idempotency_keys where organization_id = ${organizationId}`
}
