// Invitations that can no longer be accepted are kept for a while, so that a late visitor learns why. Then they are deleted.
import type { Parts } from '../parts.ts'
import { deleteSettledBefore } from './store.ts'

const daysKept = 30

export const sweepInvitations = async ({ database, clock }: Pick<Parts, 'database' | 'clock'>): Promise<void> => {
  await deleteSettledBefore(database.sql, new Date(clock.now().getTime() - daysKept * 86_400_000))
}
