// Deletes audit rows that are older than the operator's setting, and rows above a limit, so that audit rows cannot fill the disk.
import type { Parts } from '../parts.ts'
import { deleteBeyond, deleteOld } from '../storage/history.ts'

/** Maximum number of rows in the audit log. These rows and their indexes use about 8 GB. */
const mostRows = 10_000_000

export const sweepAudit = async (
  { database, clock, settings }: Pick<Parts, 'database' | 'clock' | 'settings'>,
  most = mostRows,
): Promise<void> => {
  const { sql } = database
  await deleteOld(sql, 'audit_log', new Date(clock.now().getTime() - settings.auditDays * 86_400_000))
  await deleteBeyond(sql, 'audit_log', most)
}
