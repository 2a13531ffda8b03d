// Tests a race deterministically: stops an operation at a chosen point, runs a second operation, and lets the first operation
// continue.
import type { Transaction } from '#src/control/storage/database.ts'
import type { TestControl } from './harness.ts'

const longestMs = 10_000

type Before = ({ reading: string } | { writing: string }) & {
  /**
   * A text that only the SQL of the tested operation contains. Without this text, the SQL of a periodic task might be taken for
   * that of the operation.
   */
  statement?: string
}

/**
 * Starts the operation `act`, and stops it by a lock. `before` names a table, and whether reading or writing the table stops `act`.
 * Then runs `meanwhile`, and lets `act` continue.
 */
export const inBetween = async <T>(
  { database }: Pick<TestControl, 'database'>,
  before: Before,
  act: () => Promise<T>,
  meanwhile: (transaction: Transaction) => Promise<unknown>,
): Promise<T> => {
  // `act` ends only after this transaction has released its lock. A transaction waits for a promise that it returns, and so would
  // never end. Return the promise inside an object instead.
  const { acting } = await database.transaction(async (transaction) => {
    const isRead = 'reading' in before
    const table = isRead ? before.reading : before.writing
    await transaction`lock table ${transaction(table)} in ${isRead ? transaction`access exclusive` : transaction`share`} mode`
    const acting = act()
    acting.catch(() => {})
    const waiting = async () => {
      // Within a transaction, PostgreSQL reads `pg_stat_activity` only once, and then repeats the result. This statement makes the
      // next query read the present activity.
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
