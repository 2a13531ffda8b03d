// Deletes an organization. One transaction deletes everything that gives access or can be used.
// Control keeps the organization's id until no runner has anything of the organization. Then
// sandboxes/upkeep/without-organization.ts deletes the id, even after a crash.

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

/** Repeats `work` after a deadlock. Concurrent creates lock some of the tables in another order than `deleteOrganization`. */
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
