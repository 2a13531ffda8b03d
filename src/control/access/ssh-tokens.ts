// The SQL of SSH access. The database stores only a hash of each token.
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { withRunner } from '#src/control/sandboxes/service.ts'
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import { refuseDangling } from './preview-tokens.ts'

export type SshAccessRow = {
  id: string
  token_hash: string
  sandbox_id: string
  /** Hash of the API key that made the token. The token becomes invalid with this key. Null: made without an API key. */
  maker_hash: string | null
  created_at: Date
  updated_at: Date
  expires_at: Date
}

/** Inserts a token and returns its row. The token expires no later than the API key that made it. */
export const insertSshAccess = async (sql: Sql, row: SshAccessRow): Promise<SshAccessRow> => {
  const { id, token_hash, sandbox_id, maker_hash, created_at, updated_at, expires_at } = row
  const [inserted] = await sql<SshAccessRow[]>`
    insert into ssh_access (id, token_hash, sandbox_id, maker_hash, created_at, updated_at, expires_at)
    values (${id}, ${token_hash}, ${sandbox_id}, ${maker_hash}, ${created_at}, ${updated_at},
            least(${expires_at}, (select expires_at from api_keys where hash = ${maker_hash})))
    returning *`.catch((error) => refuseDangling(error, sandbox_id))
  return inserted!
}

/** Counts the valid SSH tokens of a sandbox. The lock prevents that concurrent calls exceed the limit together. */
export const countSshAccess = async (transaction: Transaction, sandboxId: string, now: Date): Promise<number> => {
  await transaction`select 1 from sandboxes where id = ${sandboxId} for no key update`
  const [row] = await transaction<{ count: number }[]>`
    select count(*)::integer as count from ssh_access where sandbox_id = ${sandboxId} and expires_at > ${now}`
  return row?.count ?? 0
}

export type OpenedBySsh = { sandbox: SandboxRow; expiresAt: Date }

/** Finds the sandbox of an SSH token that is valid now, and the expiry of the token. */
export const findBySshToken = async (sql: Sql, tokenHash: string, now: Date): Promise<OpenedBySsh | undefined> => {
  const [access] = await sql<Pick<SshAccessRow, 'sandbox_id' | 'expires_at'>[]>`
    select sandbox_id, expires_at from ssh_access where token_hash = ${tokenHash} and expires_at > ${now}`
  if (access === undefined) return undefined
  const [sandbox] = await sql<SandboxRow[]>`
    ${withRunner(sql)} where sandboxes.id = ${access.sandbox_id} and sandboxes.state <> 'destroyed'
      and sandboxes.desired_state <> 'destroyed'`
  return sandbox && { sandbox, expiresAt: access.expires_at }
}

/** Deletes one token of a sandbox, or all of its tokens if `tokenHash` is undefined. Returns how many were deleted. */
export const deleteSshAccess = async (sql: Sql, sandboxId: string, tokenHash: string | undefined): Promise<number> => {
  const { count } = await sql`
    delete from ssh_access where sandbox_id = ${sandboxId}
      and (${tokenHash === undefined} or token_hash = ${tokenHash ?? null})`
  return count
}

export const forgetSshAccess = async (sql: Sql, now: Date): Promise<void> => {
  await sql`delete from ssh_access where expires_at <= ${now}`
}
