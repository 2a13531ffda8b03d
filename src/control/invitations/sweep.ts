// Deletes old invitations. Expired and closed invitations are kept for a while. An invited user who comes too late can
// therefore learn the reason.
import type { Parts } from '../parts.ts'
import { deleteSettledBefore } from './store.ts'

const daysKept = 30

export const sweepInvitations = async ({ database, clock }: Pick<Parts, 'database' | 'clock'>): Promise<void> => {
  await deleteSettledBefore(database.sql, new Date(clock.now().getTime() - daysKept * 86_400_000))
}
