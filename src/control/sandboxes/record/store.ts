// The SQL of sandboxes. A query for a caller finds only sandboxes of the caller's organization. Only `writeState`
// writes `state`.
import { isIdLike } from '#src/control/id-like.ts'
import { isDuplicate, type Piece, type Sql, type Transaction } from '#src/control/storage/database.ts'
import { noSandbox, Problem } from '#src/problems.ts'
import type { Cause } from '#src/wire/runner-link.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import { type ColumnValues, jsonColumns, type NewSandbox } from './columns.ts'
import { asLeftover } from './leftovers.ts'
import { stateRows } from './lifecycle.ts'
import { languageLabel, type SandboxRow } from './sandbox.ts'
import type { ForRunnerQuery } from './schemas.ts'

/** Who made a change: a person's id, a runner's id or the name of a timer. */
export type By = { kind: 'user' | 'runner' | 'timer'; id: string }

export type StateChange = {
  to: SandboxState
  by: By
  /** A sentence about why the state changed, for the timeline. */
  reason?: string | null
  cause?: Cause | null
  /** Columns besides `state` that the same SQL statement writes. */
  set?: Partial<SandboxRow>
  /**
   * Commits without waiting until the change is on disk. If the change is lost, the runner repeats its report
   * (docs/adr/0017-what-waits-for-the-disk.md).
   */
  isToldAgain?: boolean
  /** Writes only if a timer of the sandbox is due at the moment of the write. */
  whileDue?: boolean
}

/** Selects sandboxes with the columns of their runner that verbs and the gate need. */
export const withRunner = (sql: Sql): Piece => sql`
  select sandboxes.*, runners.is_silent as runner_is_silent, runners.last_heartbeat_at as runner_heartbeat_at,
    runners.lost_at as runner_lost_at, runners.address as runner_address, runners.gate_id as runner_gate_id, runners.gate_address as runner_gate_address,
    runners.gate_public_url as runner_gate_url, runners.pause as runner_pause, runners.fork as runner_fork
  from sandboxes left join runners on runners.id = sandboxes.runner_id`

/** The columns of a sandbox's row after a write, and the URL of its runner's gate. API replies are made from these values. */
const written = (sql: Sql): Piece => sql`
  sandboxes.*, (select gate_public_url from runners where runners.id = sandboxes.runner_id) as runner_gate_url`

export const nameTaken = (name: string | undefined, cause: unknown): Problem =>
  new Problem('already_exists', `A sandbox named "${name}" already exists.`, { cause })

/**
 * Finds a sandbox of this organization that is neither destroyed nor an unclaimed warm one. A text that looks like an id is never
 * treated as a name. Otherwise somebody could name a sandbox like the id of a deleted sandbox, and get its calls.
 */
export const findSandbox = async (
  sql: Sql,
  organizationId: string,
  idOrName: string,
): Promise<SandboxRow | undefined> => {
  const [row] = await sql<SandboxRow[]>`
    ${withRunner(sql)}
    where sandboxes.id in (
        select id from sandboxes where organization_id = ${organizationId} and id = ${idOrName}
        union all
        select id from sandboxes
        where organization_id = ${organizationId} and name = ${isIdLike(idOrName) ? null : idOrName}::text
          and desired_state <> 'destroyed')
      and sandboxes.state <> 'destroyed' and warm_pool_id is null
    order by sandboxes.id = ${idOrName} desc limit 1`
  return row
}

/** Finds a sandbox by its id, otherwise by its name. Throws 404 for sandboxes of other organizations. */
export const getSandbox = async (sql: Sql, organizationId: string, idOrName: string): Promise<SandboxRow> => {
  const row = await findSandbox(sql, organizationId, idOrName)
  if (!row) throw noSandbox(idOrName)
  return row
}

/** Finds a sandbox of any organization. Only for the reconciler, timers and runners, which do not act for a caller. */
export const findSandboxById = async (sql: Sql, id: string): Promise<SandboxRow | undefined> => {
  const [row] = await sql<SandboxRow[]>`
    ${withRunner(sql)} where sandboxes.id = ${id}`
  return row
}

/** Reads and locks a sandbox. No other transaction can write the sandbox's row before `transaction` ends. */
export const lockSandbox = async (transaction: Transaction, id: string): Promise<SandboxRow> => {
  const [row] = await transaction<SandboxRow[]>`
    select * from sandboxes where id = ${id} and state <> 'destroyed' for no key update`
  if (!row) throw noSandbox(id)
  return row
}

const stuckAt = (state: SandboxState, now: Date): Date | null => {
  const { stuckAfterSeconds } = stateRows[state]
  return stuckAfterSeconds === null ? null : new Date(now.getTime() + stuckAfterSeconds * 1000)
}

const event = (sql: Sql, from: SandboxState | null, change: StateChange, now: Date) => sql`
  told as (
    insert into sandbox_events
      (sandbox_id, organization_id, from_state, to_state, at, by_kind, by_id, reason, cause)
    select id, organization_id, ${from}, ${change.to}, ${now}, ${change.by.kind}, ${change.by.id},
      ${change.reason ?? null}, ${change.cause ? sql.json(change.cause) : null}
    from written
  )
  select * from written`

/**
 * Marks JSON columns for the driver. Otherwise the driver would not write JSON. For an array, the driver would write a text array
 * of PostgreSQL.
 */
const asWritten = <T extends Partial<ColumnValues>>(sql: Sql, values: T): T => {
  const written = { ...values }
  for (const name of jsonColumns) {
    const value = values[name]
    if (value !== null && value !== undefined) (written as Record<string, unknown>)[name] = sql.json(value)
  }
  return written
}

/**
 * Writes the state and its event in one statement. Writes nothing and returns `undefined` if another process wrote
 * first, or, with `whileDue`, if no timer is due.
 */
export const writeState = async (
  sql: Sql,
  sandbox: SandboxRow,
  change: StateChange,
  now: Date,
): Promise<SandboxRow | undefined> => {
  const columns: Partial<SandboxRow> = {
    stuck_at: stuckAt(change.to, now),
    progress: null,
    ...change.set,
    state: change.to,
    state_changed_at: now,
    updated_at: now,
    version: sandbox.version + 1,
  }
  const { isToldAgain = false, whileDue = false } = change
  const [row] = await sql<SandboxRow[]>`
    with ${isToldAgain ? sql`hasty as (select set_config('synchronous_commit', 'off', true)),` : sql``} written as (
      update sandboxes set ${sql(asWritten(sql, columns))} ${isToldAgain ? sql`from hasty` : sql``}
      where id = ${sandbox.id} and state = ${sandbox.state} and version = ${sandbox.version}
        ${whileDue ? sql`and due_at <= ${now}` : sql``}
      returning ${written(sql)}
    ), ${event(sql, sandbox.state, change, now)}`
  if (row) row.previous_state_changed_at = sandbox.state_changed_at
  return row
}

/** Writes a new sandbox with its first event. Throws 409 if the unique index shows that the name is in use. */
export const insertSandbox = async (sql: Sql, sandbox: NewSandbox, by: By): Promise<SandboxRow> => {
  const now = sandbox.created_at
  const columns = {
    ...asWritten(sql, sandbox),
    state_changed_at: now,
    updated_at: now,
    last_activity_at: now,
    stuck_at: stuckAt(sandbox.state, now),
  }
  try {
    const [row] = await sql<SandboxRow[]>`
      with written as (insert into sandboxes ${sql(columns)} returning ${written(sql)}),
      ${event(sql, null, { to: sandbox.state, by }, now)}`
    return row as SandboxRow
  } catch (error) {
    if (!isDuplicate(error)) throw error
    throw nameTaken(sandbox.name, error)
  }
}

/**
 * Lists the sandboxes and the leftovers of a runner, in the order of ids. Destroyed sandboxes are listed until the
 * runner has reported that it removed them.
 */
export const listForRunner = async (sql: Sql, runnerId: string, asked: ForRunnerQuery): Promise<SandboxRow[]> => {
  const { states, skipReconcilingSandboxes, after = null, limit = null } = asked
  const wanted = states?.length ? states : null
  const hasLeftovers = wanted === null && !skipReconcilingSandboxes
  const rows = await sql<(SandboxRow & { leftover_generation: number | null })[]>`
    with listed as (
      select id, null::integer as leftover_generation from sandboxes
      where runner_id = ${runnerId} and (state <> 'destroyed' or gone_at is null)
        and (${wanted}::text[] is null or state = any(${wanted}::text[]))
        and (not ${skipReconcilingSandboxes}::boolean or state = desired_state)
        and (${after}::text is null or id > ${after})
      union all
      select sandbox_id, generation from leftovers
      where runner_id = ${runnerId} and ${hasLeftovers} and (${after}::text is null or sandbox_id > ${after})
      order by id limit ${limit}::int)
    select sandboxes.*, leftover_generation from listed join sandboxes using (id) order by id`
  return rows.map(({ leftover_generation, ...row }) =>
    leftover_generation === null ? row : asLeftover(row, leftover_generation),
  )
}

/** Lists sandboxes of a lost runner that become `archived` or `error` (upkeep/lost-runner.ts). Empty if the runner is not lost. */
export const listToGiveUp = (sql: Sql, runnerId: string, most: number): Promise<SandboxRow[]> =>
  sql<SandboxRow[]>`
    select sandboxes.* from sandboxes join runners on runners.id = runner_id and lost_at is not null
    where runner_id = ${runnerId} and sandboxes.desired_state <> 'destroyed'
      and sandboxes.state not in ('archived', 'destroying', 'destroyed')
      and (sandboxes.state <> 'error' or archived_at is not null or save_state = 'saved')
    order by sandboxes.id limit ${most}`

/**
 * Lists sandboxes for which these runners have work to do, and whose state last changed before `before`. The condition must match
 * the index sandboxes_owed.
 */
export const listUnderWay = (sql: Sql, runnerIds: readonly string[], before: Date): Promise<SandboxRow[]> =>
  sql<SandboxRow[]>`
    select * from sandboxes
    where runner_id in ${sql(runnerIds as string[])} and state_changed_at < ${before}
      and (stuck_at is not null or (state = 'destroyed' and gone_at is null)
        or (state = 'error' and desired_state = 'destroyed'))
    order by state_changed_at limit 500`

/** Writes columns that do not affect the state. */
export const updateSandbox = async (
  sql: Sql,
  id: string,
  set: Partial<Omit<SandboxRow, 'state' | 'version' | 'desired_state'>>,
): Promise<SandboxRow> => {
  const [row] = await sql<SandboxRow[]>`
    update sandboxes set ${sql(asWritten(sql, set))} where id = ${id} and state <> 'destroyed' returning ${written(sql)}`
  if (!row) throw noSandbox(id)
  return row
}

/**
 * Replaces all labels. If the label with the default language of `code-run` changes, the generation grows, so that the runner gets
 * the language. The generation does not grow in the state `error`, or while the sandbox is to be destroyed.
 */
export const writeLabels = async (
  sql: Sql,
  id: string,
  labels: Record<string, string>,
  now: Date,
): Promise<SandboxRow> => {
  const [row] = await sql<SandboxRow[]>`
    with told as (
      select id, case when state <> 'error' and desired_state <> 'destroyed'
        and labels ->> ${languageLabel} is distinct from ${labels[languageLabel] ?? null}::text then 1 else 0 end as anew
      from sandboxes where id = ${id} for update
    )
    update sandboxes set labels = ${sql.json(labels)}, updated_at = ${now},
      generation = generation + anew, version = version + anew
    from told where sandboxes.id = told.id and state <> 'destroyed' returning ${written(sql)}`
  if (!row) throw noSandbox(id)
  return row
}

/** Stores `now` as the time of the sandbox's last activity, at most every `atMostEverySeconds`. */
export const touch = async (sql: Sql, sandbox: SandboxRow, now: Date, atMostEverySeconds: number): Promise<void> => {
  const before = new Date(now.getTime() - atMostEverySeconds * 1000)
  // If the stored time is in the future, it is always overwritten, because the clock of the process that wrote it was
  // wrong.
  if (sandbox.last_activity_at > before && sandbox.last_activity_at <= now) return
  await sql`
    update sandboxes set last_activity_at = ${now}
    where id = ${sandbox.id} and not (last_activity_at > ${before} and last_activity_at <= ${now})`
}

/** Lists sandboxes of a deleted organization that are still to be destroyed. */
export const listLiveOf = (sql: Sql, organizationId: string, most: number): Promise<SandboxRow[]> =>
  sql<SandboxRow[]>`
    ${withRunner(sql)}
    where organization_id = ${organizationId} and desired_state <> 'destroyed'
    order by sandboxes.created_at limit ${most}`

/**
 * Deletes all rows about the sandboxes of a deleted organization. Call this only when no runner has any of these
 * sandboxes.
 */
export const forgetSandboxesOf = async (transaction: Transaction, organizationId: string): Promise<void> => {
  await transaction`delete from sandboxes where organization_id = ${organizationId}`
  await transaction`delete from sandbox_events where organization_id = ${organizationId}`
}

/**
 * Returns whether a region has sandboxes. Includes destroyed sandboxes until their runner reports that it removed
 * them.
 */
export const hasLiveSandboxesIn = async (sql: Sql, regionId: string): Promise<boolean> => {
  const [row] = await sql`select 1 from sandboxes where region_id = ${regionId} and gone_at is null limit 1`
  return row !== undefined
}

/**
 * Stores the new telemetry endpoint of a region. A runner gets the endpoint with the next assignment of each of its
 * sandboxes.
 */
export const writeOtelEndpointIn = async (
  transaction: Transaction,
  regionId: string,
  endpoint: string | null,
): Promise<void> => {
  await transaction`
    update sandboxes set otel_endpoint = ${endpoint}
    where region_id = ${regionId} and otel_endpoint_override is null and state <> 'destroyed'`
}

/** Deletes the rows of a region's destroyed sandboxes that their runners have removed. */
export const forgetSandboxesIn = async (transaction: Transaction, regionId: string): Promise<void> => {
  await transaction`delete from sandboxes where region_id = ${regionId} and gone_at is not null`
}
