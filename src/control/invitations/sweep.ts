// Deletes invitations 30 days after their end. Until then, an invited user who answers too late is told the reason.
import type { Parts } from '../parts.ts'
import { deleteSettledBefore } from './store.ts'

const daysKept = 30

export const sweepInvitations = async ({ database, clock }: Pick<Parts, 'database' | 'clock'>): Promise<void> => {
  await deleteSettledBefore(database.sql, new Date(clock.now().getTime() - daysKept * 86_400_000))
}
