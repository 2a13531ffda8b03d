// The rules of invitations. Only owners can invite, with a credential that has every permission.
// If an invitation is cancelled before its mail is sent, the mail is not sent.

import { type ChangeParts, changeAsOwner } from '#src/control/auth/change-membership.ts'
import type { Organization } from '#src/control/people/organization.ts'
import { Problem } from '#src/problems.ts'
import type { Caller } from '../auth/route.ts'
import { readExpiry } from '../expiry.ts'
import { readAddress } from '../mail/address.ts'
import type { Outbox } from '../mail/outbox.ts'
import { queueMail, takeBackMail } from '../mail/service.ts'
import type { Settings } from '../parts.ts'
import { developerRoleId, getAssignableRoles } from '../roles/service.ts'
import type { Sql, Transaction } from '../storage/database.ts'
import { asInvitationView, type Invitation } from './invitation.ts'
import { letterOf } from './letter.ts'
import type { CreateInvitation, UpdateInvitation } from './schemas.ts'
import {
  cancelExpired,
  countMade,
  findOfOrganization,
  insertInvitation,
  isInvited,
  isMemberByAddress,
  listOfOrganization,
  listPendingIds,
  settleInvitation,
  writeInvitation,
} from './store.ts'

export type InvitationParts = ChangeParts & { settings: Pick<Settings, 'publicUrl'>; outbox: Pick<Outbox, 'nudge'> }

type AsOwnerOf = { caller: Caller; organization: Organization }

const daysOpen = 7
const day = 86_400_000
const mostPending = 1000
/**
 * Maximum numbers of invitation mails that one organization sends within 24 hours: in all, and to one address. The addresses
 * may belong to people who never asked for mail.
 */
const mostInADay = { ofOrganization: 1000, toAddress: 10 }

const asOwner = ({ caller, organization }: AsOwnerOf) => ({ caller, organizationId: organization.id })

const getInvitation = async (sql: Sql, organizationId: string, id: string): Promise<Invitation> => {
  const invitation = await findOfOrganization(sql, organizationId, id)
  if (invitation === undefined) throw new Problem('not_found', 'There is no such invitation.')
  return invitation
}

const checkIsPending = ({ status }: Invitation): void => {
  if (status !== 'pending') throw new Problem('forbidden', `This invitation has been ${status}.`)
}

export const checkIsOpen = (invitation: Invitation, now: Date): void => {
  checkIsPending(invitation)
  if (invitation.expiresAt <= now) throw new Problem('forbidden', 'This invitation has expired.')
}

const checkMayInvite = async (sql: Sql, organizationId: string, email: string, now: Date): Promise<void> => {
  const made = await countMade(sql, organizationId, email, new Date(now.getTime() - day))
  if (made.pending >= mostPending) {
    throw new Problem('forbidden', `An organization can have at most ${mostPending} pending invitations.`)
  }
  if (made.ofLately >= mostInADay.ofOrganization || made.ofLatelyToAddress >= mostInADay.toAddress) {
    throw new Problem('rate_limited', 'Too many invitations were sent within a day. Try again later.')
  }
}

export const createInvitation = async (parts: InvitationParts, as: AsOwnerOf, input: CreateInvitation) => {
  const { caller, organization } = as
  const now = parts.clock.now()
  const email = readAddress('email', input.email)
  const expiresAt = readExpiry(input.expiresAt, now) ?? new Date(now.getTime() + daysOpen * day)
  const { role = 'member', assignedRoleIds = [developerRoleId] } = input
  if (organization.personal) throw new Problem('forbidden', 'Nobody can be invited to a personal organization.')
  const invitation = await changeAsOwner(parts, asOwner(as), async (sql) => {
    const roles = role === 'owner' ? [] : await getAssignableRoles(sql, organization.id, assignedRoleIds)
    if (await isMemberByAddress(sql, organization.id, email)) {
      throw new Problem('conflict', `${email} is a member already.`)
    }
    await cancelExpired(sql, organization.id, email, now)
    if (await isInvited(sql, organization.id, email)) throw new Problem('conflict', `${email} is invited already.`)
    await checkMayInvite(sql, organization.id, email, now)
    const given = { email, invitedBy: caller.user.email, organizationId: organization.id, expiresAt, role }
    const roleIds = roles.map(({ id }) => id)
    const made = await getInvitation(sql, organization.id, await insertInvitation(sql, given, roleIds, now))
    await queueMail(sql, { about: made.id, userId: caller.user.id, ...letterOf(made, parts.settings.publicUrl) }, now)
    return made
  })
  parts.outbox.nudge()
  return asInvitationView(invitation)
}

/** Lists the invitations of an organization that can be accepted now. */
export const listInvitations = async ({ database, clock }: InvitationParts, organizationId: string) =>
  (await listOfOrganization(database.sql, organizationId, clock.now())).map(asInvitationView)

/** Replaces the role and the assigned roles of an invitation, and its expiry if the input has an expiry. No second mail is sent. */
export const updateInvitation = async (parts: InvitationParts, as: AsOwnerOf, id: string, input: UpdateInvitation) => {
  const { organization } = as
  const now = parts.clock.now()
  const until = readExpiry(input.expiresAt, now)
  const invitation = await changeAsOwner(parts, asOwner(as), async (sql) => {
    const before = await getInvitation(sql, organization.id, id)
    checkIsOpen(before, now)
    const roles = input.role === 'owner' ? [] : await getAssignableRoles(sql, organization.id, input.assignedRoleIds)
    const after = { id, role: input.role, expiresAt: until ?? before.expiresAt }
    const roleIds = roles.map((role) => role.id)
    await writeInvitation(sql, after, roleIds, now)
    return await getInvitation(sql, organization.id, id)
  })
  return asInvitationView(invitation)
}

export const cancelInvitation = async (parts: InvitationParts, as: AsOwnerOf, id: string): Promise<void> => {
  await changeAsOwner(parts, asOwner(as), async (sql) => {
    const invitation = await getInvitation(sql, as.organization.id, id)
    checkIsPending(invitation)
    await settleInvitation(sql, id, 'cancelled', parts.clock.now())
    await takeBackMail(sql, id)
  })
}

/** Removes the unsent mails of all open invitations of an organization. Called when the organization is deleted. */
export const takeBackLettersOf = async (transaction: Transaction, organizationId: string): Promise<void> => {
  for (const id of await listPendingIds(transaction, organizationId)) await takeBackMail(transaction, id)
}
