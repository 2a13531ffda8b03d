// Deletes a snapshot, puts it out of use and back. Only the organization that it belongs to may; a general one is the
// operator's.
import type { Actor, SandboxParts } from '#src/control/sandboxes/parts.ts'
import { Problem } from '#src/problems.ts'
import { forgetBuildLog } from './build-logs.ts'
import { findImage, writeWanted } from './image-store.ts'
import { dropImage, pushImage } from './images.ts'
import { findSnapshotByIdOrName, removeSnapshot, type Snapshot, writeSnapshotState } from './store.ts'

const getOwn = async ({ database }: SandboxParts, { organization }: Actor, idOrName: string): Promise<Snapshot> => {
  const snapshot = await findSnapshotByIdOrName(database.sql, organization.id, idOrName)
  if (snapshot === undefined) throw new Problem('not_found', 'There is no such snapshot.')
  if (snapshot.organizationId === organization.id) return snapshot
  throw new Problem('forbidden', 'This snapshot belongs to the server; only its operator changes it.')
}

/** Its name is free at once. Sandboxes made from it live on, and runners keep its files for as long as they do. */
export const deleteSnapshot = async (parts: SandboxParts, actor: Actor, idOrName: string): Promise<void> => {
  const { database, clock } = parts
  const { id, image } = await getOwn(parts, actor, idOrName)
  await database.transaction(async (transaction) => {
    await removeSnapshot(transaction, id)
    await dropImage(transaction, image, clock.now())
  })
  await pushImage(parts, image)
}

/** No new sandboxes from it. An image that can be brought again gives its room back meanwhile. */
export const deactivateSnapshot = async (parts: SandboxParts, actor: Actor, idOrName: string): Promise<void> => {
  const { database, clock } = parts
  const { id, image, state } = await getOwn(parts, actor, idOrName)
  if (state === 'inactive') return
  await database.transaction(async (transaction) => {
    if (!(await writeSnapshotState(transaction, id, ['active'], 'inactive', clock.now())))
      throw new Problem('bad_request', `A snapshot that is ${state} cannot be deactivated.`)
    const source = (await findImage(transaction, image))?.source
    if (source?.kind !== 'registry' && source?.kind !== 'file') return
    const [other] = await transaction`select 1 from snapshots where image = ${image} and state = 'active' limit 1`
    if (!other) await writeWanted(transaction, image, false, clock.now())
  })
  await pushImage(parts, image)
}

export const activateSnapshot = async (parts: SandboxParts, actor: Actor, idOrName: string): Promise<Snapshot> => {
  const { database, clock } = parts
  const found = await getOwn(parts, actor, idOrName)
  if (found.state !== 'active') {
    await database.transaction(async (transaction) => {
      // Whether a runner still has its image is found out by asking for it.
      const [present] = await transaction`
        select 1 from runners where ${found.image} = any(images) and state <> 'decommissioned' limit 1`
      const to = present ? 'active' : 'pending'
      if (!(await writeSnapshotState(transaction, found.id, ['inactive', 'error'], to, clock.now())))
        throw new Problem('bad_request', `A snapshot that is ${found.state} cannot be activated.`)
      if (!present) await forgetBuildLog(transaction, found.image)
      await writeWanted(transaction, found.image, true, clock.now())
    })
    await pushImage(parts, found.image)
  }
  return await getOwn(parts, actor, found.id)
}
