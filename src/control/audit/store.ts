// The SQL of the audit log.
import type { Sql } from '../storage/database.ts'

export type Entry = {
  at: Date
  organizationId: string | null
  actorId: string
  actorEmail: string
  credential: string
  keyName: string | null
  clientAddress: string
  userAgent: string
  requestId: string
  action: string
  params: Record<string, string>
  targets: string[]
  /** `null`: the call is still running, or its process was killed during it. */
  status: number | null
  code: string | null
}

export type EntryRow = {
  id: number
  at: Date
  organization_id: string | null
  actor_id: string
  actor_email: string
  credential: string
  key_name: string | null
  client_address: string
  user_agent: string
  request_id: string
  action: string
  params: Record<string, string>
  targets: string[]
  status: number | null
  code: string | null
}

/**
 * `alone`: uses a transaction of its own that does not wait for the disk. PostgreSQL writes its log in order, so a later change
 * of the same request cannot become durable before this row (docs/adr/0015-an-audit-row-before-the-write.md).
 */
export const insertEntry = async (sql: Sql, entry: Entry, alone?: 'alone'): Promise<number> => {
  const [row] = await sql<[{ id: number }]>`
    with hasty as (select ${alone ? sql`set_config('synchronous_commit', 'off', true)` : sql`null`})
    insert into audit_log (at, organization_id, actor_id, actor_email, credential, key_name, client_address, user_agent,
                           request_id, action, params, targets, status, code)
    select ${entry.at}::timestamptz, ${entry.organizationId}, ${entry.actorId}, ${entry.actorEmail}, ${entry.credential},
           ${entry.keyName}, ${entry.clientAddress}, ${entry.userAgent}, ${entry.requestId}, ${entry.action},
           ${sql.json(entry.params)}::jsonb, ${entry.targets}::text[], ${entry.status}::integer, ${entry.code}
    from hasty
    returning id`
  return row.id
}

type Outcome = Pick<Entry, 'organizationId' | 'targets' | 'status' | 'code'>

/** Returns false if there is no such row. */
export const completeEntry = async (sql: Sql, id: number, outcome: Outcome): Promise<boolean> => {
  const { count } = await sql`
    with hasty as (select set_config('synchronous_commit', 'off', true))
    update audit_log set organization_id = ${outcome.organizationId}, targets = ${outcome.targets}::text[],
                         status = ${outcome.status}::integer, code = ${outcome.code}
    from hasty where id = ${id}`
  return count > 0
}

export const deleteEntry = async (sql: Sql, id: number): Promise<void> => {
  await sql`delete from audit_log where id = ${id}`
}

export type Filter = {
  organizationId: string | undefined
  from: Date | undefined
  to: Date | undefined
  actor: string | undefined
  action: string | undefined
  target: string | undefined
  /** Returns only rows after this one, in the order of the listing. */
  after: { at: string; id: number } | undefined
}

/** Lists rows, newest first. */
export const listEntries = async (sql: Sql, filter: Filter, limit: number): Promise<EntryRow[]> => {
  const { organizationId, from, to, actor, action, target, after } = filter
  return await sql<EntryRow[]>`
    select id, at, organization_id, actor_id, actor_email, credential, key_name, client_address, user_agent, request_id,
           action, params, targets, status, code
    from audit_log
    where true
      ${organizationId === undefined ? sql`` : sql`and organization_id = ${organizationId}`}
      ${from === undefined ? sql`` : sql`and at >= ${from}`}
      ${to === undefined ? sql`` : sql`and at < ${to}`}
      ${actor === undefined ? sql`` : sql`and actor_id = ${actor}`}
      ${action === undefined ? sql`` : sql`and action = ${action}`}
      ${target === undefined ? sql`` : sql`and targets @> ${[target]}::text[]`}
      ${after === undefined ? sql`` : sql`and (at, id) < (${after.at}::timestamptz, ${after.id}::bigint)`}
    order by at desc, id desc limit ${limit}`
}
