// The SQL of `/api-keys`.
import { isPermission, type Permission } from '../auth/permissions.ts'
import type { Sql } from '../storage/database.ts'

export type ApiKey = {
  organizationId: string
  userId: string
  name: string
  maskedValue: string
  permissions: Permission[]
  createdAt: Date
  lastUsedAt: Date | null
  expiresAt: Date | null
}

type Row = {
  organization_id: string
  user_id: string
  name: string
  masked_value: string
  permissions: string[]
  created_at: Date
  last_used_at: Date | null
  expires_at: Date | null
}

const columns = (sql: Sql) =>
  sql`organization_id, user_id, name, masked_value, permissions, created_at, last_used_at, expires_at`

const readKey = (row: Row): ApiKey => ({
  organizationId: row.organization_id,
  userId: row.user_id,
  name: row.name,
  maskedValue: row.masked_value,
  permissions: row.permissions.filter(isPermission),
  createdAt: row.created_at,
  lastUsedAt: row.last_used_at,
  expiresAt: row.expires_at,
})

export type NewKey = Pick<
  ApiKey,
  'organizationId' | 'userId' | 'name' | 'maskedValue' | 'permissions' | 'expiresAt'
> & {
  hash: string
  createdAt: Date
  /** Hash of the key that makes the new key; null if a signed-in user makes it. */
  makerHash: string | null
}

export const insertKey = async (sql: Sql, key: NewKey): Promise<void> => {
  await sql`
    insert into api_keys (
      organization_id, user_id, name, hash, masked_value, permissions, created_at, expires_at, maker_hash)
    values (${key.organizationId}, ${key.userId}, ${key.name}, ${key.hash}, ${key.maskedValue}, ${key.permissions},
            ${key.createdAt}, ${key.expiresAt}, ${key.makerHash})`
}

/**
 * Locks the API key that makes a new key: nobody can delete the old key during the transaction. `undefined`: the old key is
 * deleted already.
 */
export const holdMaker = async (sql: Sql, hash: string): Promise<{ expiresAt: Date | null } | undefined> => {
  const [row] = await sql<{ expires_at: Date | null }[]>`
    select expires_at from api_keys where hash = ${hash} for key share`
  return row && { expiresAt: row.expires_at }
}

export const countKeys = async (
  sql: Sql,
  organizationId: string,
  userId: string,
): Promise<{ ofUser: number; ofAll: number }> => {
  const [row] = await sql<[{ of_user: number; of_all: number }]>`
    select count(*) filter (where user_id = ${userId}) as of_user, count(*) as of_all
    from api_keys where organization_id = ${organizationId}`
  return { ofUser: row.of_user, ofAll: row.of_all }
}

/** Lists the API keys of a user, or of all members, newest first. An organization has no more keys than fit in one answer. */
export const listKeys = async (sql: Sql, organizationId: string, userId: string | undefined): Promise<ApiKey[]> => {
  const rows = await sql<Row[]>`
    select ${columns(sql)} from api_keys
    where organization_id = ${organizationId} ${userId === undefined ? sql`` : sql`and user_id = ${userId}`}
    order by created_at desc, user_id, name
    limit 10000`
  return rows.map(readKey)
}

export const findKeyByName = async (
  sql: Sql,
  organizationId: string,
  userId: string,
  name: string,
): Promise<ApiKey | undefined> => {
  const [row] = await sql<Row[]>`
    select ${columns(sql)} from api_keys
    where organization_id = ${organizationId} and user_id = ${userId} and name = ${name}`
  return row && readKey(row)
}

/** Deletes a key, and all keys and tokens that were made with it. Returns whether the key existed. */
export const deleteKey = async (sql: Sql, organizationId: string, userId: string, name: string): Promise<boolean> => {
  const { count } = await sql`
    delete from api_keys where organization_id = ${organizationId} and user_id = ${userId} and name = ${name}`
  return count === 1
}

/** Records that a key was used at `now`, unless a use within the last `seconds` is recorded already. */
export const touchKey = async (sql: Sql, hash: string, now: Date, seconds: number): Promise<void> => {
  await sql`
    update api_keys set last_used_at = ${now}
    where hash = ${hash} and (last_used_at is null or last_used_at <= ${new Date(now.getTime() - seconds * 1000)})`
}
