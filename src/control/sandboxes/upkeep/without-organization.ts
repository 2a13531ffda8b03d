// Removes the sandboxes of a deleted organization from their runners, and then deletes the sandboxes' rows. Every step may be
// repeated, interrupted, or run in several processes at once.

import { dropBuildsOf, pushImage } from '#src/control/images/images.ts'
import {
  type DeletedOrganization,
  endOrganization,
  keepsAnything,
  lookAtDeleted,
} from '#src/control/organizations/service.ts'
import type { RunningParts } from '#src/control/running.ts'
import { dropVolumesOf, forgetVolumesOf } from '#src/control/volumes/service.ts'
import { forgetSandboxesOf, listLiveOf } from '../record/store.ts'
import { destroy } from '../verbs/destroy.ts'
import { forgetKeysOf } from '../verbs/idempotency.ts'

const reason = 'Its organization was deleted.'
/** Maximum number of sandboxes that one sweep destroys. More would delay the other steps. */
const mostPerSweep = 200

const destroySome = async (
  parts: RunningParts,
  { id, deletedBy }: DeletedOrganization,
  most: number,
): Promise<number> => {
  const rows = await listLiveOf(parts.database.sql, id, most)
  for (const row of rows) {
    try {
      await destroy(parts, row, { by: { kind: 'user', id: deletedBy }, reason })
    } catch (error) {
      parts.log.warn({ err: error, sandboxId: row.id }, 'a sandbox without an organization is still there; tried again')
    }
  }
  return rows.length
}

/** Deletes the rows of an organization after its runners have reported that they have none of its sandboxes any more. */
const forget = async (parts: RunningParts, organization: DeletedOrganization): Promise<void> => {
  const { database, clock } = parts
  const now = clock.now()
  const builds = await database.transaction(async (transaction) => {
    if (await keepsAnything(transaction, organization.id)) return []
    const dropped = await dropBuildsOf(transaction, organization.id, now)
    await forgetSandboxesOf(transaction, organization.id)
    await forgetVolumesOf(transaction, organization.id)
    await forgetKeysOf(transaction, organization.id)
    await endOrganization(transaction, organization, now)
    return dropped
  })
  for (const image of builds) await pushImage(parts, image)
}

export const sweepDeletedOrganizations = async (parts: RunningParts): Promise<void> => {
  const { database, clock, log } = parts
  let left = mostPerSweep
  for (const organization of await lookAtDeleted(database.sql, clock.now())) {
    try {
      left -= await destroySome(parts, organization, left)
      await dropVolumesOf(parts, organization.id)
      await forget(parts, organization)
    } catch (error) {
      log.error({ err: error, organizationId: organization.id }, 'a deleted organization is still there; tried again')
    }
    if (left <= 0) return
  }
}
