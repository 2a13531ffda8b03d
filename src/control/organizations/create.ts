import { checkActsForUser } from '#src/control/auth/permissions-now.ts'
import type { Organization } from '#src/control/people/organization.ts'
import { Problem } from '#src/problems.ts'
import { announceCredentialChange } from '../auth/callers.ts'
import type { Caller } from '../auth/route.ts'
import { readDisplayText } from '../display-text.ts'
import { findSharedRegion } from '../regions/service.ts'
import { isDangling } from '../storage/database.ts'
import type { OrganizationParts } from './change.ts'
import { countCreatedBy, insertOrganization } from './store.ts'

/** Maximum number of organizations that a user may create. The personal organization is not counted. */
const mostPerUser = 10

/**
 * Makes an organization that the caller owns. Its default region must be a shared region, because a new organization has no
 * region of its own.
 */
export const createOrganization = async (
  parts: OrganizationParts,
  caller: Caller,
  body: { name: string; defaultRegionId: string },
): Promise<Organization> => {
  const { database, clock, callers } = parts
  const { user } = caller
  await checkActsForUser(database.sql, caller)
  if (!user.ownsAddress) {
    throw new Problem('forbidden', 'Your e-mail address has to be verified first, and not by single sign-on alone.')
  }
  const name = readDisplayText('name', body.name)
  const region = await findSharedRegion(parts, body.defaultRegionId)
  if (region === undefined) throw new Problem('not_found', 'There is no such region.')
  const organization = await database
    .transaction(async (transaction) => {
      if ((await countCreatedBy(transaction, user.id)) >= mostPerUser) {
        throw new Problem('forbidden', `A user can create at most ${mostPerUser} organizations.`)
      }
      const wanted = { name, createdBy: user.id, defaultRegionId: region.id }
      const made = await insertOrganization(transaction, wanted, clock.now())
      await announceCredentialChange(transaction)
      return made
    })
    .catch((error: unknown) => {
      if (isDangling(error)) throw new Problem('not_found', 'There is no such region.', { cause: error })
      throw error
    })
  callers.forget()
  return organization
}
