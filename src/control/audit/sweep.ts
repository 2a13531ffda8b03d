// The log is kept as long as the operator says, and never grows past what a disk holds.
import type { Parts } from '../parts.ts'
import { deleteOld, deleteOldestOf, findLargest, guessCount } from './store.ts'

const rowsPerSweep = 5_000
/** About 8 GB with their indexes. */
const mostRows = 10_000_000

/** Where there are too many, the organization that wrote the most loses its oldest: nobody can push out another's. */
export const sweepAudit = async (
  { database, clock, settings }: Pick<Parts, 'database' | 'clock' | 'settings'>,
  most = mostRows,
): Promise<void> => {
  const { sql } = database
  await deleteOld(sql, new Date(clock.now().getTime() - settings.auditDays * 86_400_000), rowsPerSweep)
  const count = await guessCount(sql)
  if (count <= most) return
  const largest = await findLargest(sql, count)
  if (largest) await deleteOldestOf(sql, largest.organizationId, rowsPerSweep)
}
