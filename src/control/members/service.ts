// The rules of membership. An organization always has an owner, and nobody changes their own access.
// Only a caller with every permission can change the access of others, so nobody gives a permission that they lack.

import { type ChangeParts, changeAsOwner, changeMembership } from '#src/control/auth/change-membership.ts'
import type { Organization } from '#src/control/people/organization.ts'
import { Problem } from '#src/problems.ts'
import { cutBackKeys } from '../api-keys/cut-back.ts'
import { checkHoldsAll, heldThrough } from '../auth/grant.ts'
import type { Caller } from '../auth/route.ts'
import { type AsOwner, getAssignableRoles } from '../roles/service.ts'
import type { Sql, Transaction } from '../storage/database.ts'
import { asMemberView, type Member } from './member.ts'
import type { MemberAccess } from './schemas.ts'
import {
  countMembers,
  deleteMember,
  findMember,
  hasOtherOwner,
  insertMember,
  listMembers as listRows,
  writeAccess,
} from './store.ts'

export { insertOwner } from './store.ts'

const membersPerOrganization = 5000

const getMember = async (sql: Sql, organizationId: string, userId: string): Promise<Member> => {
  const member = await findMember(sql, organizationId, userId)
  if (member === undefined) throw new Problem('not_found', 'There is no such member.')
  return member
}

const heldBy = ({ role, assignedRoles }: Member) => heldThrough(role, assignedRoles)

/** Throws if the change would leave no owner. Call this with the lock of memberships, so that no other owner leaves meanwhile. */
const checkKeepsOwner = async (sql: Sql, { organizationId, userId, role }: Member): Promise<void> => {
  if (role === 'owner' && !(await hasOtherOwner(sql, organizationId, userId))) {
    throw new Problem('forbidden', 'An organization must have at least one owner.')
  }
}

export const listMembers = async ({ database }: ChangeParts, organizationId: string) =>
  (await listRows(database.sql, organizationId)).map(asMemberView)

export const changeAccess = async (
  parts: ChangeParts,
  as: AsOwner,
  userId: string,
  { role, assignedRoleIds }: MemberAccess,
) => {
  const { caller, organizationId } = as
  if (userId === caller.user.id) throw new Problem('forbidden', 'You cannot change your own access.')
  const member = await changeAsOwner(parts, as, async (sql) => {
    const before = await getMember(sql, organizationId, userId)
    // An owner has every permission without roles, so the roles in the request are ignored.
    const roles = role === 'owner' ? [] : await getAssignableRoles(sql, organizationId, assignedRoleIds)
    if (role !== 'owner') await checkKeepsOwner(sql, before)
    await writeAccess(sql, before, { role, roleIds: roles.map(({ id }) => id) }, parts.clock.now())
    await cutBackKeys(sql, organizationId, userId)
    return await getMember(sql, organizationId, userId)
  })
  return asMemberView(member)
}

export const removeMember = async (parts: ChangeParts, as: AsOwner, userId: string): Promise<void> => {
  const { caller, organizationId } = as
  if (userId === caller.user.id)
    throw new Problem('forbidden', 'You cannot remove yourself. Leave the organization instead.')
  await changeAsOwner(parts, as, async (sql) => {
    const member = await getMember(sql, organizationId, userId)
    await checkKeepsOwner(sql, member)
    await deleteMember(sql, organizationId, userId)
  })
}

type Leaving = { caller: Caller; organization: Organization }

/** Ends the caller's membership, and deletes all keys of the caller in this organization. */
export const leaveOrganization = async (parts: ChangeParts, { caller, organization }: Leaving): Promise<void> => {
  if (organization.personal) throw new Problem('forbidden', 'You cannot leave a personal organization.')
  await changeMembership(parts, organization.id, async (sql) => {
    const member = await getMember(sql, organization.id, caller.user.id)
    checkHoldsAll(caller, heldBy(member))
    await checkKeepsOwner(sql, member)
    await deleteMember(sql, organization.id, caller.user.id)
  })
}

type Joining = { organizationId: string; userId: string; role: 'owner' | 'member'; roleIds: readonly string[] }

/**
 * Makes a user a member. Returns false if the user is a member already. Call this only inside `changeMembership`. The calling
 * function must check that each role belongs to the organization or is global. This function does not check it.
 */
export const joinOrganization = async (sql: Transaction, joining: Joining, now: Date): Promise<boolean> => {
  // This check comes before the limit: a member must not be refused because the organization is full.
  if ((await findMember(sql, joining.organizationId, joining.userId)) !== undefined) return false
  if ((await countMembers(sql, joining.organizationId)) >= membersPerOrganization) {
    throw new Problem('forbidden', `An organization can have at most ${membersPerOrganization} members.`)
  }
  const roleIds = joining.role === 'owner' ? [] : joining.roleIds
  return await insertMember(sql, joining, { role: joining.role, roleIds }, now)
}
