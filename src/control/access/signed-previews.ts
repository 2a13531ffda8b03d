// The SQL of signed preview URLs. Only a SHA-256 hash of each token is stored.
// Nobody can guess a token from its hash in time: a token has 82 random bits and is valid for a day at most.

import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { withRunner } from '#src/control/sandboxes/service.ts'
import type { Sql } from '#src/control/storage/database.ts'
import { refuseDangling } from './preview-tokens.ts'

type SignedPreviewRow = {
  token_hash: string
  sandbox_id: string
  port: number
  created_at: Date
  expires_at: Date
  /** Hash of the API key that made the URL. The URL becomes invalid with this key. Null: made without an API key. */
  maker_hash: string | null
}

export const insertSignedPreview = async (sql: Sql, row: SignedPreviewRow): Promise<void> => {
  const { token_hash, sandbox_id, port, created_at, expires_at, maker_hash } = row
  await sql`
    insert into signed_previews (token_hash, sandbox_id, port, created_at, maker_hash, expires_at)
    values (${token_hash}, ${sandbox_id}, ${port}, ${created_at}, ${maker_hash},
            least(${expires_at}, (select expires_at from api_keys where hash = ${maker_hash})))
  `.catch((error) => refuseDangling(error, sandbox_id))
}

export const countSignedPreviews = async (sql: Sql, sandboxId: string, now: Date): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::integer as count from signed_previews where sandbox_id = ${sandboxId} and expires_at > ${now}`
  return row?.count ?? 0
}

/** Finds the sandbox of the signed URL with this token and port. Without `now`, an expired URL is found too. */
export const findSigned = async (
  sql: Sql,
  tokenHash: string,
  port: number,
  now: Date | undefined,
): Promise<SandboxRow | undefined> => {
  const [row] = await sql<SandboxRow[]>`
    ${withRunner(sql)} join signed_previews on sandbox_id = sandboxes.id
    where token_hash = ${tokenHash} and port = ${port} and sandboxes.state <> 'destroyed'
      and (${now === undefined} or expires_at > ${now ?? null})`
  return row
}

/** Deletes a signed URL, so that its open connections end. Returns whether the URL existed. */
export const expireSignedPreview = async (
  sql: Sql,
  tokenHash: string,
  sandboxId: string,
  port: number,
): Promise<boolean> => {
  const { count } = await sql`
    delete from signed_previews where token_hash = ${tokenHash} and sandbox_id = ${sandboxId} and port = ${port}`
  return count > 0
}

export const forgetSignedPreviews = async (sql: Sql, before: Date): Promise<void> => {
  await sql`delete from signed_previews where expires_at < ${before}`
}
