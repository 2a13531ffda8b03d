// Limits the number of rows of history tables, such as the audit log. Callers can add rows without end, so deleting old rows is not
// enough.
import type { Piece, Sql } from './database.ts'

/** The history tables, from which `deleteBeyond` deletes rows by organization. Each value is the column with the time of a row. */
const timeColumns = {
  audit_log: 'at',
  sandbox_events: 'at',
  webhook_messages: 'at',
  idempotency_keys: 'created_at',
} as const

type History = keyof typeof timeColumns

/** Maximum number of rows that one statement deletes, so that no other query waits long. */
const rowsAtOnce = 5_000
/** Number of rows of a table that are sampled to find the organization with the most rows. */
const sampledRows = 10_000

export const deleteOld = async (sql: Sql, history: History, before: Date): Promise<void> => {
  await sql`
    delete from ${sql(history)} where ctid = any(array(
      select ctid from ${sql(history)} where ${sql(timeColumns[history])} < ${before}
      order by ${sql(timeColumns[history])} limit ${rowsAtOnce}))`
}

/** Returns PostgreSQL's estimate of the number of rows of the table, which is much faster than counting. */
const guessCount = async (sql: Sql, history: History): Promise<number> => {
  const [row] = await sql<[{ count: number }]>`
    select reltuples::bigint as count from pg_class where oid = ${history}::text::regclass`
  return row.count
}

/** Estimates from a sample which organization has the most rows. The id is null for the rows without an organization. */
const findLargest = async (sql: Sql, history: History, count: number) => {
  const percent = Math.min(100, (100 * sampledRows) / count)
  const [row] = await sql<{ organizationId: string | null }[]>`
    select organization_id as "organizationId" from ${sql(history)} tablesample system (${percent})
    group by organization_id order by count(*) desc limit 1`
  return row
}

/**
 * Above `most` rows, deletes the oldest rows of the organization with the most rows, so that nobody else loses any.
 * `mayGo`: SQL condition for rows that may be deleted.
 */
export const deleteBeyond = async (
  sql: Sql,
  history: History,
  most: number,
  mayGo: Piece = sql`true`,
): Promise<void> => {
  const count = await guessCount(sql, history)
  if (count <= most) return
  const largest = await findLargest(sql, history, count)
  if (largest === undefined) return
  const { organizationId } = largest
  // PostgreSQL uses no index for `is not distinct from`, so null needs a condition of its own.
  const isTheirs = organizationId === null ? sql`organization_id is null` : sql`organization_id = ${organizationId}`
  await sql`
    delete from ${sql(history)} where ctid = any(array(
      select ctid from ${sql(history)} where ${isTheirs} and ${mayGo}
      order by ${sql(timeColumns[history])} limit ${rowsAtOnce}))`
}
