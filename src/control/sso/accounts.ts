// An organization's identity provider signs a person in. This file turns the person into one of our users. A person with a new
// e-mail address becomes a user and a member. If one of our users has the address, that user must first confirm the link.
//
// Through single sign-on, an attacker could become a user with somebody else's address. The address's owner would later sign in as
// the attacker's user. So a user is linked only if something other than single sign-on has verified the address.

import { changeMembership } from '#src/control/auth/change-membership.ts'
import { findHeld } from '#src/control/auth/permissions-now.ts'
import type { User } from '#src/control/people/user.ts'
import { Problem } from '#src/problems.ts'
import { endKeysOf } from '../api-keys/cut-back.ts'
import { tellOfSsoJoining } from '../audit/page-write.ts'
import type { Origin } from '../audit/subject.ts'
import type { Callers } from '../auth/callers.ts'
import { heldThrough } from '../auth/grant.ts'
import { domainOf } from '../identity-providers/domain.ts'
import type { IdentityProvider } from '../identity-providers/identity-provider.ts'
import { findProviderOf } from '../identity-providers/service.ts'
import { joinOrganization } from '../members/service.ts'
import type { Parts } from '../parts.ts'
import { getAssignableRoles } from '../roles/service.ts'
import type { Transaction } from '../storage/database.ts'
import { admitUser } from '../users/admit.ts'
import { findUserByEmail, findUserById } from '../users/service.ts'
import { type Person, requireEnabled } from './steps.ts'
import { deleteLinksOf, findLinkedUserId, findStrandedUserId, putLink } from './store.ts'

export type AccountParts = Pick<Parts, 'database' | 'clock'> & { callers: Callers }

const pendingDays = 7

/**
 * A user without `ownsAddress` may be an attacker who entered a victim's e-mail address. After a link to this user, the victim
 * would sign in to the attacker's account.
 */
const checkMayBeLinked = (user: User): void => {
  if (!user.ownsAddress) throw new Problem('sso_link_refused')
  checkIsNoOperator(user)
}

/** An operator manages every organization. So one organization's identity provider must not decide who signs in as an operator. */
const checkIsNoOperator = ({ systemRole }: User): void => {
  if (systemRole === 'admin') throw new Problem('sso_link_refused')
}

/**
 * Finds the user of a person whose SSO link is no longer valid, because the provider was deleted and made again or its issuer
 * changed. The provider must list the domain of the person's address. The user must have no more permissions than a new member,
 * because somebody who manages providers could gain the user's permissions.
 *
 * Deletes the user's SSO links and API keys, because somebody else may have made these before the provider listed the domain.
 */
const takeBack = async (sql: Transaction, provider: IdentityProvider, { email }: Person): Promise<User | undefined> => {
  const domain = domainOf(email)
  if (domain === undefined || !provider.emailDomains.includes(domain)) return undefined
  const userId = await findStrandedUserId(sql, provider, email)
  if (userId === undefined) return undefined
  const { organizationId, defaultAssignedRoleIds } = provider
  const given = heldThrough('member', await getAssignableRoles(sql, organizationId, defaultAssignedRoleIds))
  const held = (await findHeld(sql, organizationId, userId)) ?? []
  if (held.some((permission) => !given.includes(permission))) return undefined
  await deleteLinksOf(sql, userId)
  await endKeysOf(sql, userId)
  return await findUserById(sql, userId)
}

/**
 * Handles the first sign-in with an account. Returns the user if the person may sign in now. If a user must first
 * confirm the link, stores a pending link and returns `undefined`.
 */
const admit = async (
  sql: Transaction,
  provider: IdentityProvider,
  person: Person,
  now: Date,
): Promise<User | undefined> => {
  const { subject, email, name } = person
  const made = await admitUser(sql, { email, name, emailVerified: true, emailVerifiedBy: 'sso' })
  const user = made ?? (await takeBack(sql, provider, person))
  const owner = user ?? (await findUserByEmail(sql, email))
  // The user with this e-mail address was deleted a moment ago. The caller gets 503, and can repeat the sign-in.
  if (owner === undefined) throw new Problem('unavailable')
  if (user === undefined) checkMayBeLinked(owner)
  const expiresAt = new Date(now.getTime() + pendingDays * 86_400_000)
  const state = user === undefined ? 'pending' : 'linked'
  await putLink(sql, { provider, subject }, { userId: owner.id, email, state, createdAt: now, expiresAt })
  return user
}

/**
 * Returns the user of a person who has signed in; a new person becomes a user. Locks the memberships, so that two first
 * sign-ins make one user.
 */
export const findOrAdmit = async (
  parts: AccountParts,
  { id, organizationId }: IdentityProvider,
  person: Person,
  from: Origin,
): Promise<User> => {
  const user = await changeMembership(parts, organizationId, async (sql) => {
    const now = parts.clock.now()
    // The provider is read again under the lock of `changeMembership`, so that its default roles cannot change meanwhile.
    const provider = requireEnabled(await findProviderOf(sql, organizationId, id))
    const linkedId = await findLinkedUserId(sql, { provider, subject: person.subject })
    const found = linkedId === undefined ? await admit(sql, provider, person, now) : await findUserById(sql, linkedId)
    if (found === undefined) return undefined
    checkIsNoOperator(found)
    const roleIds = provider.defaultAssignedRoleIds
    const isNew = await joinOrganization(sql, { organizationId, userId: found.id, role: 'member', roleIds }, now)
    if (isNew) await tellOfSsoJoining(sql, { at: now, organizationId, user: found, providerId: provider.id, from })
    return found
  })
  if (user === undefined) throw new Problem('sso_link_pending')
  return user
}
