// Deletes old invitations. An invitation that can no longer be accepted is kept for a while, so that an invited user who
// comes too late learns why.
import type { Parts } from '../parts.ts'
import { deleteSettledBefore } from './store.ts'

const daysKept = 30

export const sweepInvitations = async ({ database, clock }: Pick<Parts, 'database' | 'clock'>): Promise<void> => {
  await deleteSettledBefore(database.sql, new Date(clock.now().getTime() - daysKept * 86_400_000))
}
