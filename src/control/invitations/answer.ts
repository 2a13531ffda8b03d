// Users list, accept and decline the invitations to their own e-mail address. Other users get 404. The address must be
// verified. A verification by an organization's identity provider does not count.

import { changeMembership } from '#src/control/auth/change-membership.ts'
import { checkActsForUser } from '#src/control/auth/permissions-now.ts'
import type { User } from '#src/control/people/user.ts'
import { Problem } from '#src/problems.ts'
import type { Caller } from '../auth/route.ts'
import { foldAddress } from '../mail/address.ts'
import { takeBackMail } from '../mail/service.ts'
import { joinOrganization } from '../members/service.ts'
import type { Transaction } from '../storage/database.ts'
import { asInvitationView, type Invitation } from './invitation.ts'
import { checkIsOpen, type InvitationParts } from './service.ts'
import { countForAddress, findForAddress, listForAddress, settleInvitation } from './store.ts'

export const listOwnInvitations = async ({ database, clock }: InvitationParts, { email, ownsAddress }: User) => {
  if (!ownsAddress) return []
  return (await listForAddress(database.sql, foldAddress(email), clock.now())).map(asInvitationView)
}

export const countOwnInvitations = async (
  { database, clock }: InvitationParts,
  { email, ownsAddress }: User,
): Promise<number> => (ownsAddress ? await countForAddress(database.sql, foldAddress(email), clock.now()) : 0)

/** Accepts or declines an invitation. With the lock of memberships, only one of several concurrent answers succeeds. */
const settle = async (
  parts: InvitationParts,
  caller: Caller,
  id: string,
  status: 'accepted' | 'declined',
  work: (transaction: Transaction, invitation: Invitation, now: Date) => Promise<void>,
): Promise<Invitation> => {
  await checkActsForUser(parts.database.sql, caller)
  const { email, ownsAddress } = caller.user
  if (!ownsAddress) throw new Problem('forbidden', 'Your e-mail address has to be verified first.')
  const get = async (sql: Parameters<typeof findForAddress>[0]) => {
    const invitation = await findForAddress(sql, foldAddress(email), id)
    if (invitation === undefined) throw new Problem('not_found', 'There is no such invitation.')
    return invitation
  }
  const { organizationId } = await get(parts.database.sql)
  return await changeMembership(parts, organizationId, async (transaction) => {
    const now = parts.clock.now()
    const invitation = await get(transaction)
    checkIsOpen(invitation, now)
    await work(transaction, invitation, now)
    await settleInvitation(transaction, id, status, now)
    await takeBackMail(transaction, id)
    return await get(transaction)
  })
}

/** Makes the caller a member with the roles that the invitation has now. Only one call can accept an invitation. */
export const acceptInvitation = async (parts: InvitationParts, caller: Caller, id: string) => {
  const accepted = await settle(parts, caller, id, 'accepted', async (transaction, invitation, now) => {
    const { organizationId, role, assignedRoles } = invitation
    const joining = { organizationId, userId: caller.user.id, role, roleIds: assignedRoles.map((each) => each.id) }
    const isNew = await joinOrganization(transaction, joining, now)
    if (!isNew) throw new Problem('conflict', 'You are a member already.')
  })
  return asInvitationView(accepted)
}

export const declineInvitation = async (parts: InvitationParts, caller: Caller, id: string): Promise<void> => {
  await settle(parts, caller, id, 'declined', async () => {})
}
