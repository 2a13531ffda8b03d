// Stops something at the very place where two meet, and lets the other one pass.
import type { Transaction } from '#src/control/storage/database.ts'
import type { TestControl } from './harness.ts'

const longestMs = 10_000

/** Begins `act`, holds it up where it comes to a table, does `meanwhile` with the database, and lets it go on. */
export const inBetween = async <T>(
  { database }: Pick<TestControl, 'database'>,
  before: { reading: string } | { writing: string },
  act: () => Promise<T>,
  meanwhile: (transaction: Transaction) => Promise<unknown>,
): Promise<T> => {
  // In a box: a transaction waits for what it is answered.
  const { acting } = await database.transaction(async (transaction) => {
    const isRead = 'reading' in before
    const table = isRead ? before.reading : before.writing
    await transaction`lock table ${transaction(table)} in ${isRead ? transaction`access exclusive` : transaction`share`} mode`
    const acting = act()
    acting.catch(() => {})
    const waiting = () => transaction`select 1 from pg_locks where not granted and relation = ${table}::regclass`
    const end = Date.now() + longestMs
    while ((await waiting()).length === 0) if (Date.now() > end) throw new Error(`nothing comes to ${table}`)
    await meanwhile(transaction)
    return { acting }
  })
  return await acting
}
