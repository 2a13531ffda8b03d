// Deletes, deactivates and activates snapshots. Only the organization that owns a snapshot may do so. General snapshots
// belong to the operator.

import type { Actor } from '#src/control/auth/actor.ts'
import { forgetBuildLog } from '#src/control/images/build-logs.ts'
import { findImage, holdImage, isImageNeeded, isOnRunner, writeWanted } from '#src/control/images/image-store.ts'
import { dropImage, pushImage } from '#src/control/images/images.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import { takeFromRunners } from '#src/control/runners/images.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { noSnapshot, Problem } from '#src/problems.ts'
import type { RunningParts } from '../running.ts'
import { findSnapshotByIdOrName, type Snapshot } from './store.ts'
import { moveSnapshots, removeSnapshot } from './write.ts'

const getOwn = async ({ database }: RunningParts, { organization }: Actor, idOrName: string): Promise<Snapshot> => {
  const snapshot = await findSnapshotByIdOrName(database.sql, organization.id, idOrName)
  if (snapshot === undefined) throw noSnapshot(idOrName)
  if (snapshot.organizationId === organization.id) return snapshot
  throw new Problem('forbidden', 'This snapshot belongs to the server; only its operator changes it.')
}

/** Deletes a snapshot. Its name is free immediately. Runners keep its image as long as a sandbox needs it. */
export const deleteSnapshot = async (parts: RunningParts, actor: Actor, idOrName: string): Promise<void> => {
  const { database, clock } = parts
  const { id, image } = await getOwn(parts, actor, idOrName)
  await database.transaction(async (transaction) => {
    await holdImage(transaction, image)
    await removeSnapshot(transaction, id)
    await dropImage(transaction, image, clock.now())
  })
  await pushImage(parts, image)
}

/**
 * Deactivates a snapshot: no new sandbox can be made from it. If no other active snapshot has its image, and the image
 * came from a registry or a file, runners remove the image when nothing else needs it.
 */
export const deactivateSnapshot = async (parts: RunningParts, actor: Actor, idOrName: string): Promise<void> => {
  const { database, clock } = parts
  const { id, image, state } = await getOwn(parts, actor, idOrName)
  if (state === 'inactive') return
  await database.transaction(async (transaction) => {
    await holdImage(transaction, image)
    const moved = await moveSnapshots(transaction, 'deactivate', transaction`id = ${id}`, { now: clock.now() })
    if (moved.length === 0) throw new Problem('bad_request', `A snapshot that is ${state} cannot be deactivated.`)
    const source = (await findImage(transaction, image))?.source
    if (source?.kind !== 'registry' && source?.kind !== 'file') return
    const [other] = await transaction`select 1 from snapshots where image = ${image} and state = 'active' limit 1`
    if (!other) await writeWanted(transaction, image, false, clock.now())
  })
  await pushImage(parts, image)
}

export const activateSnapshot = async (parts: RunningParts, actor: Actor, idOrName: string): Promise<Snapshot> => {
  const { database, clock } = parts
  checkNotSuspended(parts, actor)
  const { id, image, state } = await getOwn(parts, actor, idOrName)
  if (state !== 'active') {
    await database.transaction(async (transaction) => {
      await holdImage(transaction, image)
      const isThere = await isStillThere(transaction, image)
      const on = isThere ? 'activate' : 'bring-again'
      const moved = await moveSnapshots(transaction, on, transaction`id = ${id}`, { now: clock.now() })
      if (moved.length === 0) throw new Problem('bad_request', `A snapshot that is ${state} cannot be activated.`)
      if (!isThere) await forgetBuildLog(transaction, image)
      await writeWanted(transaction, image, true, clock.now())
    })
    await pushImage(parts, image)
  }
  return await getOwn(parts, actor, id)
}

/**
 * Returns whether a runner has the image and will keep it. A runner may be removing an image that nothing needs. Then the function
 * returns false and removes the image from the lists of the runners' images, so that a runner makes it again.
 */
const isStillThere = async (transaction: Transaction, image: string): Promise<boolean> => {
  if (await isImageNeeded(transaction, image)) return await isOnRunner(transaction, image)
  await takeFromRunners(transaction, image)
  return false
}
