// Writes columns of a sandbox other than its state: progress, facts that its runner reports, and settings that its runner needs.
import { noSandbox } from '#src/problems.ts'
import type { Piece, Sql, Transaction } from '../../storage/database.ts'
import { statesAwaitingImage } from './lifecycle.ts'
import type { NetworkColumns } from './network-policy.ts'
import type { SandboxRow } from './sandbox.ts'
import type { Variables } from './variables.ts'

type VersionedId = Pick<SandboxRow, 'id' | 'version'>
type Coming = { progress: NonNullable<SandboxRow['progress']>; stuckAt: Date }

/** Stores the progress of the verb under way, and the time at which the sandbox will be treated as stuck. */
export const writeProgress = async (
  sql: Sql,
  { id, version }: VersionedId,
  { progress, stuckAt }: Coming,
): Promise<void> => {
  await sql`
    update sandboxes set progress = ${sql.json(progress)}, stuck_at = ${stuckAt}
    where id = ${id} and version = ${version}`
}

/** Stores the progress of making an image in the row of each sandbox that waits for this image. */
export const writeImageProgress = async (sql: Sql, image: string, { progress, stuckAt }: Coming): Promise<void> => {
  await sql`
    update sandboxes set progress = ${sql.json(progress)}, stuck_at = ${stuckAt}
    where image = ${image} and state in ${sql(statesAwaitingImage)}`
}

/** Stores the time at which the sandbox will be treated as stuck, if its runner reports no progress before. */
export const writeStuckAt = async (sql: Sql, { id, version }: VersionedId, stuckAt: Date): Promise<void> => {
  await sql`update sandboxes set stuck_at = ${stuckAt} where id = ${id} and version = ${version}`
}

/** Stores the time at which the runner reported that it has removed the sandbox. */
export const writeGone = async (sql: Sql, id: string, now: Date): Promise<void> => {
  await sql`update sandboxes set gone_at = ${now} where id = ${id} and gone_at is null`
}

/** Deletes the row of a destroyed sandbox. */
export const forgetDestroyed = async (sql: Sql, id: string): Promise<void> => {
  await sql`delete from sandboxes where id = ${id} and state = 'destroyed'`
}

/**
 * Called when a runner is taken out of service. Removes the runner from the rows of its destroyed and archived
 * sandboxes.
 */
export const leaveRunner = async (sql: Sql, runnerId: string, now: Date): Promise<void> => {
  // Sandboxes that are to be destroyed and have an archive go to another runner of the region, which deletes the archive.
  await sql`
    update sandboxes set runner_id = other.id
    from runners gone cross join lateral (
      select id from runners where region_id = gone.region_id and id <> gone.id and state <> 'decommissioned'
      order by state = 'ready' desc, id limit 1) other
    where gone.id = ${runnerId} and sandboxes.runner_id = gone.id and archive_id is not null
      and (sandboxes.state = 'destroying' or (sandboxes.state = 'destroyed' and gone_at is null))`
  await sql`update sandboxes set gone_at = ${now} where runner_id = ${runnerId} and state = 'destroyed' and gone_at is null`
  await sql`update sandboxes set runner_id = null where runner_id = ${runnerId} and state in ('destroyed', 'archived')`
}

/**
 * An SQL statement for the first message of a runner that was silent. The silence does not count as idle time of the runner's
 * sandboxes, because nobody could use them.
 */
export const forgiveSilence = (
  sql: Sql,
  { runnerId, silentBefore, now }: { runnerId: string; silentBefore: Date; now: Date },
): Piece => sql`
  update sandboxes set last_activity_at = least(${now}, last_activity_at + (${now}::timestamptz - last_heartbeat_at))
  from runners
  where runners.id = ${runnerId} and last_heartbeat_at < ${silentBefore}
    and sandboxes.runner_id = runners.id and sandboxes.state = 'started'`

/**
 * Writes the variables of a sandbox whose row is locked. The generation grows, except in `error` and while the sandbox is to be
 * destroyed. Calls into the sandbox wait until its runner has the variables.
 */
export const writeVariables = async (
  transaction: Transaction,
  { id, state, desired_state, generation, version }: SandboxRow,
  { env, unset_env }: Variables,
  now: Date,
): Promise<SandboxRow> => {
  const anew = state !== 'error' && desired_state !== 'destroyed' ? 1 : 0
  const [row] = await transaction<SandboxRow[]>`
    update sandboxes set env = ${transaction.json(env)}, unset_env = ${unset_env}, updated_at = ${now},
      generation = ${generation + anew}, least_generation = ${generation + anew}, version = ${version + anew}
    where id = ${id} returning *`
  return row!
}

/**
 * Writes a network policy. The generation grows, so that the runner gets the policy, except in `error` and while the sandbox is to
 * be destroyed.
 */
export const writeNetwork = async (
  sql: Sql,
  id: string,
  change: Partial<NetworkColumns>,
  now: Date,
): Promise<SandboxRow> => {
  const [row] = await sql<SandboxRow[]>`
    with told as (
      select id, case when state <> 'error' and desired_state <> 'destroyed' then 1 else 0 end as anew
      from sandboxes where id = ${id} for update
    )
    update sandboxes set ${sql(change)}, updated_at = ${now}, generation = generation + anew, version = version + anew
    from told where sandboxes.id = told.id and state <> 'destroyed' returning sandboxes.*`
  if (!row) throw noSandbox(id)
  return row
}

/** SQL condition for sandboxes that have the secret. */
const hasSecret = (sql: Sql, organizationId: string, secretId: string): Piece => sql`
  organization_id = ${organizationId} and secrets <> '[]' and gone_at is null
    and secrets @> ${sql.json([{ secretId }])}::jsonb`

export const listWithSecret = (sql: Sql, organizationId: string, secretId: string): Promise<SandboxRow[]> =>
  sql<SandboxRow[]>`select * from sandboxes where ${hasSecret(sql, organizationId, secretId)}`

/** Lists the sandboxes that have secrets and that run, or are to run, on this runner. */
export const listWithSecretsOn = (sql: Sql, runnerId: string): Promise<SandboxRow[]> =>
  sql<SandboxRow[]>`
    select * from sandboxes
    where runner_id = ${runnerId} and secrets <> '[]' and gone_at is null
      and (desired_state in ('started', 'paused') or state in ('started', 'paused'))`

/** SQL expression for the growth of the generation: 1, or 0 in `error` and while the sandbox is to be destroyed. */
const anewFor = (sql: Sql): Piece => sql`case when state <> 'error' and desired_state <> 'destroyed' then 1 else 0 end`

/** Removes a deleted secret from all sandboxes. Locking rows in the order of ids prevents deadlocks. */
export const dropSecret = async (
  transaction: Transaction,
  organizationId: string,
  secretId: string,
  now: Date,
): Promise<SandboxRow[]> => {
  await transaction`
    select from sandboxes where ${hasSecret(transaction, organizationId, secretId)} order by id for no key update`
  return await transaction<SandboxRow[]>`
    update sandboxes set updated_at = ${now}, generation = generation + ${anewFor(transaction)},
      version = version + ${anewFor(transaction)},
      secrets = coalesce((
        select jsonb_agg(each) from jsonb_array_elements(secrets) each where each ->> 'secretId' <> ${secretId}), '[]')
    where ${hasSecret(transaction, organizationId, secretId)} returning *`
}

/**
 * Writes the mounted secrets of a sandbox whose row is locked. Deletes the secrets' variables from the column `unset_env`. The
 * generation grows, except in `error` and while the sandbox is to be destroyed. Calls into the sandbox wait until its runner has
 * the secrets.
 */
export const writeSecrets = async (
  transaction: Transaction,
  { id }: SandboxRow,
  { secrets, secret_authority }: Pick<SandboxRow, 'secrets' | 'secret_authority'>,
  now: Date,
): Promise<SandboxRow> => {
  const variables = secrets.map(({ variable }) => variable)
  const [row] = await transaction<SandboxRow[]>`
    update sandboxes set secrets = ${transaction.json(secrets)}, updated_at = ${now},
      secret_authority = coalesce(${secret_authority}, secret_authority),
      unset_env = array(select name from unnest(unset_env) name where name <> all(${variables}::text[])),
      generation = generation + ${anewFor(transaction)}, version = version + ${anewFor(transaction)},
      least_generation = generation + ${anewFor(transaction)}
    where id = ${id} returning *`
  return row!
}
