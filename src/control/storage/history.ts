// Rows that tell what happened grow with everything that is done, and whoever may do something may do it all day long. So each
// table of them has a bound by number besides the one by age.
import type { Piece, Sql } from './database.ts'

/** Tables whose rows have an `organization_id`, each with the column that says when a row was written. */
const timeColumns = {
  audit_log: 'at',
  sandbox_events: 'at',
  webhook_messages: 'at',
  idempotency_keys: 'created_at',
} as const

type History = keyof typeof timeColumns

/** Deleted at once, so that nobody waits for it for long. */
const rowsAtOnce = 5_000
/** Tell well enough who has the most. */
const sampledRows = 10_000

export const deleteOld = async (sql: Sql, history: History, before: Date): Promise<void> => {
  await sql`
    delete from ${sql(history)} where ctid = any(array(
      select ctid from ${sql(history)} where ${sql(timeColumns[history])} < ${before}
      order by ${sql(timeColumns[history])} limit ${rowsAtOnce}))`
}

/** PostgreSQL's estimate of the rows, without counting. */
const guessCount = async (sql: Sql, history: History): Promise<number> => {
  const [row] = await sql<[{ count: number }]>`
    select reltuples::bigint as count from pg_class where oid = ${history}::text::regclass`
  return row.count
}

/** The organization that has the most of about so many rows, as far as a sample shows; null: what belongs to none. */
const findLargest = async (sql: Sql, history: History, count: number) => {
  const percent = Math.min(100, (100 * sampledRows) / count)
  const [row] = await sql<{ organizationId: string | null }[]>`
    select organization_id as "organizationId" from ${sql(history)} tablesample system (${percent})
    group by organization_id order by count(*) desc limit 1`
  return row
}

/**
 * Where there are more than so many rows, the organization that has the most loses its oldest: nobody can push out another's.
 * `mayGo`: a condition that keeps some of them. Default: none.
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
  // An index serves either question, and not both as one.
  const isTheirs = organizationId === null ? sql`organization_id is null` : sql`organization_id = ${organizationId}`
  await sql`
    delete from ${sql(history)} where ctid = any(array(
      select ctid from ${sql(history)} where ${isTheirs} and ${mayGo}
      order by ${sql(timeColumns[history])} limit ${rowsAtOnce}))`
}
