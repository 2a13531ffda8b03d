// Stops an operation at a chosen point, runs a second operation, and lets the first one continue: a deterministic test of a
// race.
import type { Transaction } from '#src/control/storage/database.ts'
import type { TestControl } from './harness.ts'

const longestMs = 10_000

type Before = ({ reading: string } | { writing: string }) & {
  /** A part of the SQL statement at which `act` waits. Needed if periodic work of control may reach the table first. */
  statement?: string
}

/** Starts `act`, blocks it at a table by a lock, runs `meanwhile`, and lets `act` continue. */
export const inBetween = async <T>(
  { database }: Pick<TestControl, 'database'>,
  before: Before,
  act: () => Promise<T>,
  meanwhile: (transaction: Transaction) => Promise<unknown>,
): Promise<T> => {
  // The promise is wrapped in an object. A transaction waits for a promise that its function returns, and `act` can only end
  // after the transaction.
  const { acting } = await database.transaction(async (transaction) => {
    const isRead = 'reading' in before
    const table = isRead ? before.reading : before.writing
    await transaction`lock table ${transaction(table)} in ${isRead ? transaction`access exclusive` : transaction`share`} mode`
    const acting = act()
    acting.catch(() => {})
    const waiting = async () => {
      // PostgreSQL caches `pg_stat_activity` within a transaction. Clearing the cache shows the current activity.
      await transaction`select pg_stat_clear_snapshot()`
      return await transaction`
        select 1 from pg_locks join pg_stat_activity using (pid)
        where not granted and relation = ${table}::regclass and strpos(query, ${before.statement ?? ''}) > 0`
    }
    const end = Date.now() + longestMs
    while ((await waiting()).length === 0) if (Date.now() > end) throw new Error(`nothing comes to ${table}`)
    await meanwhile(transaction)
    return { acting }
  })
  return await acting
}
