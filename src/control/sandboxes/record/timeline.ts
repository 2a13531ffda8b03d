// The timeline of a sandbox: each change of its state, with time, actor and reason. The sandbox's organization can read the
// timeline for some days after the sandbox is destroyed.

import { readCursor, writeCursor } from '#src/control/cursor.ts'
import type { Parts } from '#src/control/parts.ts'
import type { Database, Sql } from '#src/control/storage/database.ts'
import { deleteBeyond, deleteOld } from '#src/control/storage/history.ts'
import { noSandbox } from '#src/problems.ts'
import type { Cause } from '#src/wire/runner-link.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import { cleanCause, describe } from './cause.ts'
import type { ChangeFeed } from './changes.ts'
import type { SandboxEvent, TimelineQuery } from './schemas.ts'
import { type By, findSandbox } from './store.ts'

const daysKept = 30
/** Maximum number of events in the database. The events use about 4 GB with their indexes. */
const mostRows = 10_000_000

type EventRow = {
  id: number
  at: Date
  from_state: SandboxState | null
  to_state: SandboxState
  by_kind: By['kind']
  by_id: string
  reason: string | null
  cause: Cause | null
}

const asEvent = (row: EventRow): SandboxEvent => ({
  id: row.id,
  at: row.at.toISOString(),
  from: row.from_state,
  to: row.to_state,
  by: { kind: row.by_kind, id: row.by_id },
  ...(row.reason === null ? {} : { reason: row.reason }),
  ...(row.cause === null ? {} : { cause: row.cause }),
})

export const listEvents = async (
  { sql }: Database,
  organizationId: string,
  idOrName: string,
  { cursor, limit, order }: TimelineQuery,
): Promise<{ items: SandboxEvent[]; nextCursor: string | null }> => {
  const expected = { sort: 'events', order, valueIs: 'count' } as const
  const from = cursor === undefined ? undefined : readCursor(cursor, expected)
  const sandbox = await findSandbox(sql, organizationId, idOrName)
  const id = sandbox?.id ?? idOrName
  const beyond = order === 'asc' ? sql`>` : sql`<`
  const rows = await sql<EventRow[]>`
    select id, at, from_state, to_state, by_kind, by_id, reason, cause from sandbox_events
    where sandbox_id = ${id} and organization_id = ${organizationId}
      ${from === undefined ? sql`` : sql`and id ${beyond} ${from.value}::bigint`}
    order by id ${order === 'asc' ? sql`asc` : sql`desc`} limit ${limit + 1}`
  // A page can be empty although the sandbox exists: old events are deleted, or the cursor is at the end.
  if (rows.length === 0 && from === undefined && !sandbox) throw noSandbox(idOrName)
  const items = rows.slice(0, limit)
  const last = rows.length > limit ? items.at(-1) : undefined
  return {
    items: items.map(asEvent),
    nextCursor: last ? writeCursor({ sort: expected.sort, order, value: last.id, id }) : null,
  }
}

/** Finds the newest event with this change of state, not later than `until`. */
export const findChangeEvent = async (
  { sql }: Pick<Database, 'sql'>,
  { sandboxId, from, to, until }: { sandboxId: string; from: SandboxState | null; to: SandboxState; until: Date },
): Promise<SandboxEvent | undefined> => {
  const [row] = await sql<EventRow[]>`
    select id, at, from_state, to_state, by_kind, by_id, reason, cause from sandbox_events
    where sandbox_id = ${sandboxId} and from_state is not distinct from ${from} and to_state = ${to} and at <= ${until}
    order by id desc limit 1`
  return row && asEvent(row)
}

export const findEvent = async (
  { sql }: Pick<Database, 'sql'>,
  sandboxId: string,
  id: number,
): Promise<SandboxEvent | undefined> => {
  const [row] = await sql<EventRow[]>`
    select id, at, from_state, to_state, by_kind, by_id, reason, cause from sandbox_events
    where sandbox_id = ${sandboxId} and id = ${id}`
  return row && asEvent(row)
}

/** Stores and announces a mishap. Ignores destroyed sandboxes and sandboxes of another runner. */
export const addMishap = async (
  { database, clock, changes }: Pick<Parts, 'database' | 'clock'> & { changes: ChangeFeed },
  runnerId: string,
  { sandboxId, cause: given }: { sandboxId: string; cause: Cause },
): Promise<void> => {
  const { sql } = database
  const cause = cleanCause(given)
  const [written] = await sql<{ eventId: number; organizationId: string }[]>`
    insert into sandbox_events
      (sandbox_id, organization_id, from_state, to_state, at, by_kind, by_id, reason, cause)
    select id, organization_id, state, state, ${clock.now()}, 'runner', ${runnerId}, ${describe(cause) ?? null},
      ${sql.json(cause)}
    from sandboxes where id = ${sandboxId} and runner_id = ${runnerId} and state <> 'destroyed'
    returning id as "eventId", organization_id as "organizationId"`
  if (written) changes.tellMishap({ sandboxId, ...written })
}

/**
 * Writes into the timelines of these runners' sandboxes that their host does not answer. Leaves out destroyed, archived
 * and unclaimed warm sandboxes.
 */
export const noteSilence = async (sql: Sql, runnerIds: readonly string[], now: Date): Promise<void> => {
  await sql`
    insert into sandbox_events (sandbox_id, organization_id, from_state, to_state, at, by_kind, by_id, reason)
    select sandboxes.id, organization_id, sandboxes.state, sandboxes.state, ${now}, 'timer', 'silent-runner',
      'Its host does not answer. Last heard: ' || to_char(last_heartbeat_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || '.'
    from sandboxes join runners on runners.id = runner_id
    where runner_id in ${sql(runnerIds as string[])} and sandboxes.state not in ('destroyed', 'archived')
      and warm_pool_id is null`
}

export const sweepEvents = async (
  { database, clock }: Pick<Parts, 'database' | 'clock'>,
  most = mostRows,
): Promise<void> => {
  const { sql } = database
  await deleteOld(sql, 'sandbox_events', new Date(clock.now().getTime() - daysKept * 86_400_000))
  await deleteBeyond(sql, 'sandbox_events', most)
}
