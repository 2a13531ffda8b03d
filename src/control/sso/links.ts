// Pending links between users and accounts at an identity provider. Only the linked user sees a link, and confirms or rejects it.
// An API key needs all permissions of its user to confirm or reject a link.
import { checkActsForUser } from '#src/control/auth/permissions-now.ts'
import { Problem } from '#src/problems.ts'
import type { Caller } from '../auth/route.ts'
import type { Parts } from '../parts.ts'
import { acceptLink, listPendingLinks as listRows, refuseLink } from './store.ts'

type LinkParts = Pick<Parts, 'database' | 'clock'>

export const listPendingLinks = async ({ database, clock }: LinkParts, { user }: Pick<Caller, 'user'>) => {
  const links = await listRows(database.sql, user.id, clock.now())
  return links.map(({ createdAt, expiresAt, ...plain }) => ({
    ...plain,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
  }))
}

const checkWasDone = (isDone: boolean): void => {
  if (!isDone) throw new Problem('not_found', 'There is no such link that waits for your confirmation.')
}

/** Confirms a link. From then on, a sign-in with the linked account is a sign-in as the caller. */
export const confirmLink = async (parts: LinkParts, caller: Caller, id: string): Promise<void> => {
  await checkActsForUser(parts.database.sql, caller)
  checkWasDone(await acceptLink(parts.database.sql, { id, userId: caller.user.id }, parts.clock.now()))
}

export const rejectLink = async (parts: LinkParts, caller: Caller, id: string): Promise<void> => {
  await checkActsForUser(parts.database.sql, caller)
  checkWasDone(await refuseLink(parts.database.sql, { id, userId: caller.user.id }, parts.clock.now()))
}
