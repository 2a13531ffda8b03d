// The SQL of the audit log.
import type { Sql } from '../storage/database.ts'
import { conditionsOf } from './filters.ts'
import type { AuditQuery } from './schemas.ts'

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
  /** The status of the answer. Null: the call is running, or control was killed before the outcome was written. */
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
 * Inserts the audit row of a call. With `alone`, the insert has its own transaction and does not wait for the disk.
 * PostgreSQL writes changes to the disk in order. So a crash cannot lose this row and keep a later change
 * (docs/adr/0015).
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

/** Writes the outcome of a call into its audit row. Returns false if the row does not exist. */
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

/** The filters of a list of audit rows. If `organizationId` is undefined, the rows of the whole server are listed. */
type Filter = { organizationId: string | undefined; query: AuditQuery }

/**
 * A page of the list. With `after`, the page begins after this row. `skipped`: number of rows to leave out before the
 * page.
 */
type Listing = Filter & { after: { at: string; id: number } | undefined; skipped: number }

const where = (sql: Sql, { organizationId, query }: Filter) => sql`
  where true ${organizationId === undefined ? sql`` : sql`and organization_id = ${organizationId}`} ${conditionsOf(sql, query)}`

export const countEntries = async (sql: Sql, filter: Filter): Promise<number> => {
  const [{ count }] = await sql<[{ count: number }]>`select count(*)::int as count from audit_log ${where(sql, filter)}`
  return count
}

/** Lists audit rows, newest first. */
export const listEntries = async (
  sql: Sql,
  { after, skipped, ...filter }: Listing,
  limit: number,
): Promise<EntryRow[]> =>
  await sql<EntryRow[]>`
    select id, at, organization_id, actor_id, actor_email, credential, key_name, client_address, user_agent, request_id,
           action, params, targets, status, code
    from audit_log ${where(sql, filter)}
      ${after === undefined ? sql`` : sql`and (at, id) < (${after.at}::timestamptz, ${after.id}::bigint)`}
    order by at desc, id desc limit ${limit} offset ${skipped}`
