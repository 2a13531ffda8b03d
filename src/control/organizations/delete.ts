// The end of an organization. One transaction takes everything that anybody could use: keys, members, roles, invitations,
// settings, snapshots, pools. What it has on runners cannot end in a transaction: its id is kept until that is gone, and
// sandboxes/upkeep/without-organization.ts sees to it, whatever is killed meanwhile.

import { dropImagesOf, pushImage } from '#src/control/images/images.ts'
import { Problem } from '#src/problems.ts'
import { announceCredentialChange } from '../auth/callers.ts'
import type { Caller } from '../auth/route.ts'
import { takeBackLettersOf } from '../invitations/service.ts'
import { revokeRegionKeys } from '../regions/service.ts'
import type { RunningParts } from '../running.ts'
import { isDeadlock, type Transaction } from '../storage/database.ts'
import { holdOrganization, isOwner, removeOrganization } from './store.ts'

const mostTries = 5

/**
 * The deletion locks rows of many tables, and creates of the same moment lock some of them in another order. PostgreSQL then
 * sends one of the two away.
 */
const retryDeadlocks = async <T>(work: () => Promise<T>): Promise<T> => {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (tries === mostTries || !isDeadlock(error)) throw error
    }
  }
}

export const deleteOrganization = async (parts: RunningParts, { organization, user }: Caller): Promise<void> => {
  const { database, clock, callers } = parts
  const { id } = organization
  const now = clock.now()
  try {
    const remove = async (transaction: Transaction) => {
      const found = await holdOrganization(transaction, id)
      if (found === undefined) throw new Problem('not_found')
      if (found.personal) throw new Problem('forbidden', 'A personal organization cannot be deleted.')
      if (user.systemRole !== 'admin' && !(await isOwner(transaction, id, user.id)))
        throw new Problem('forbidden', 'Only an owner of the organization may do that.')
      await takeBackLettersOf(transaction, id)
      await revokeRegionKeys(transaction, id)
      const dropped = await dropImagesOf(transaction, id, now)
      await removeOrganization(transaction, id, { deletedBy: user.id, deletedAt: now })
      await announceCredentialChange(transaction)
      return dropped
    }
    const images = await retryDeadlocks(() => database.transaction(remove))
    for (const image of images) await pushImage(parts, image)
  } finally {
    callers.forget()
  }
}
