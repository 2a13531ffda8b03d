// The tokens that open the previews and the toolbox of one sandbox. A start of the sandbox replaces them. A resume does not.
// Signed-in users get the sandbox's own token. Each API key gets a different token, which becomes invalid with the key.
import { createHmac } from 'node:crypto'
import { isMakerGone } from '#src/control/auth/maker.ts'
import { hashKey, isSameHash } from '#src/control/auth/secret.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { withRunner } from '#src/control/sandboxes/service.ts'
import { isDangling, type Sql } from '#src/control/storage/database.ts'
import { noSandbox, Problem } from '#src/problems.ts'

/** Matches only tokens that are derived for an API key: a sandbox's own token is shorter. */
const keyToken = /^[\w-]{43}$/

const tokenOf = (previewToken: string, keyHash: string): string =>
  createHmac('sha256', previewToken).update(`v1:key:${keyHash}`).digest('base64url')

/** Handles a failed insert of a token. Throws 401 if the API key was deleted meanwhile, 404 if the sandbox was deleted. */
export const refuseDangling = (error: unknown, sandboxId: string): never => {
  if (isMakerGone(error)) throw new Problem('unauthorized', undefined, { cause: error })
  if (!isDangling(error)) throw error
  throw noSandbox(sandboxId, { cause: error })
}

/** Returns the preview token for a caller. With an API key, the token is derived for that key. */
export const previewTokenFor = async (sql: Sql, sandbox: SandboxRow, keyHash: string | undefined): Promise<string> => {
  if (keyHash === undefined) return sandbox.preview_token
  const token = tokenOf(sandbox.preview_token, keyHash)
  // If the sandbox has restarted meanwhile, `token` is outdated. The row then has a new `preview_token`, so nothing is stored.
  await sql`
    insert into preview_tokens (sandbox_id, maker_hash, token_hash)
    select id, ${keyHash}, ${hashKey(token)} from sandboxes
    where id = ${sandbox.id} and preview_token = ${sandbox.preview_token}
    on conflict (sandbox_id, maker_hash) do update set token_hash = excluded.token_hash
    where preview_tokens.token_hash <> excluded.token_hash`.catch((error) => refuseDangling(error, sandbox.id))
  return token
}

/** Finds the sandbox to which a preview token gives access now. */
export const findByPreviewToken = async (sql: Sql, token: string, now: Date): Promise<SandboxRow | undefined> => {
  if (keyToken.test(token)) return await findByKeyToken(sql, token, now)
  const [row] = await sql<SandboxRow[]>`
    ${withRunner(sql)} where preview_token = ${token} and sandboxes.state <> 'destroyed'`
  return row
}

const findByKeyToken = async (sql: Sql, token: string, now: Date): Promise<SandboxRow | undefined> => {
  const tokenHash = hashKey(token)
  const [made] = await sql<{ sandbox_id: string; maker_hash: string }[]>`
    select sandbox_id, preview_tokens.maker_hash
    from preview_tokens join api_keys on api_keys.hash = preview_tokens.maker_hash
    where token_hash = ${tokenHash} and (expires_at is null or expires_at > ${now})`
  if (made === undefined) return undefined
  const [row] = await sql<SandboxRow[]>`
    ${withRunner(sql)} where sandboxes.id = ${made.sandbox_id} and sandboxes.state <> 'destroyed'`
  // A token derived from a former token of the sandbox is invalid: every start of the sandbox makes a new token.
  const isCurrent = row && isSameHash(hashKey(tokenOf(row.preview_token, made.maker_hash)), tokenHash)
  return isCurrent ? row : undefined
}
