// Volumes: named directories that several sandboxes mount. Calls treat a volume of another organization as if it did not exist.
import { randomUUID } from 'node:crypto'
import type { Actor } from '#src/control/auth/actor.ts'
import { readDisplayText } from '#src/control/display-text.ts'
import { isIdLike, looksLikeId } from '#src/control/id-like.ts'
import type { Parts } from '#src/control/parts.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import type { RunningParts } from '#src/control/running.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { pushRemoval } from './of-runner.ts'
import type { CreateVolume, Volume } from './schemas.ts'
import {
  findMounting,
  findVolume,
  findVolumeByName,
  forgetDeleted,
  forgetVolumesOf,
  holdVolumes,
  insertVolume,
  isNowhere,
  isUnmounted,
  listVolumes,
  moveVolumes,
  type VolumeRow,
} from './store.ts'

export { forgetVolumesIn, hasVolumesIn } from './store.ts'

type VolumeParts = Pick<Parts, 'database'>

const asView = (volume: VolumeRow): Volume => ({
  id: volume.id,
  name: volume.name,
  organizationId: volume.organization_id,
  state: volume.state,
  createdAt: volume.created_at.toISOString(),
  updatedAt: volume.updated_at.toISOString(),
  lastUsedAt: volume.last_used_at?.toISOString() ?? null,
  errorReason: volume.error_reason,
})

export const noVolume = (idOrName: string): Problem =>
  new Problem('not_found', `Volume ${idOrName.slice(0, 255)} not found. There is no such volume.`)

const checkVolumeName = (given: string): string => {
  const name = readDisplayText('name', given)
  const refuse = (why: string) => new Problem('bad_request', `name ${why}`)
  if (/[/\\?#%]/.test(name)) throw refuse('must not contain / \\ ? # or %, because it is used in paths')
  if (name === '.' || name === '..') throw refuse('must not be . or ..')
  if (looksLikeId(name)) throw refuse('must not look like an id')
  return name
}

/**
 * Throws if the quota is exceeded. Call this after the new volume is inserted. A deleted volume counts until its files are
 * removed.
 */
const checkQuota = async (transaction: Transaction, organizationId: string): Promise<void> => {
  // The first statement waits for the lock. So the second statement counts volumes that other transactions have committed
  // meanwhile.
  const [, [row]] = await Promise.all([
    transaction`select pg_advisory_xact_lock(hashtextextended(${`volumes ${organizationId}`}, 0))`,
    transaction<{ most: number; count: number }[]>`
      select volume_quota as most, (
        select count(*)::integer from volumes where organization_id = organizations.id and state <> 'deleted') as count
      from organizations where id = ${organizationId}`,
  ])
  if (row === undefined) throw new Problem('forbidden', 'This organization no longer exists.')
  if (row.count <= row.most) return
  throw new Problem(
    'quota_exceeded',
    `Volume quota exceeded: the volume quota of ${row.most} is exceeded: ${row.count - 1} are used, and 1 is asked for.`,
  )
}

export const createVolume = async (parts: RunningParts, actor: Actor, body: CreateVolume): Promise<Volume> => {
  checkNotSuspended(parts, actor)
  const { database, clock, settings } = parts
  const name = checkVolumeName(body.name)
  const { id: organizationId } = actor.organization
  const row = await database.transaction(async (transaction) => {
    const volume = { id: randomUUID(), organization_id: organizationId, name, size_gib: settings.volumeGiB }
    const made = await insertVolume(transaction, volume, clock.now())
    await checkQuota(transaction, organizationId)
    return made
  })
  return asView(row)
}

export const viewVolumes = async ({ database }: VolumeParts, organizationId: string, includeDeleted: boolean) =>
  (await listVolumes(database.sql, organizationId, includeDeleted)).map(asView)

export const viewVolume = async ({ database }: VolumeParts, organizationId: string, id: string): Promise<Volume> => {
  const row = await findVolume(database.sql, organizationId, id)
  if (row === undefined) throw noVolume(id)
  return asView(row)
}

export const viewVolumeByName = async ({ database }: VolumeParts, organizationId: string, name: string) => {
  const row = isIdLike(name) ? undefined : await findVolumeByName(database.sql, organizationId, name)
  if (row === undefined) throw noVolume(name)
  return asView(row)
}

/**
 * Requests the removal of a volume that no sandbox mounts. The volume is deleted after its runner has removed the
 * files.
 */
export const deleteVolume = async (parts: RunningParts, { organization }: Actor, id: string): Promise<void> => {
  const { database, clock } = parts
  const moved = await database.transaction(async (transaction) => {
    // The volume is locked first. The next query therefore sees any sandbox that a concurrent create made with this volume.
    const volume = (await holdVolumes(transaction, organization.id, [id])).find((row) => row.id === id)
    if (volume === undefined) throw noVolume(id)
    const mounting = await findMounting(transaction, volume)
    if (mounting !== undefined) {
      const sentence = mounting.isDestroyed
        ? 'A sandbox that mounts this volume is still being removed. Try again in a moment.'
        : `The sandbox "${mounting.name}" mounts this volume; delete the sandbox first.`
      throw new Problem('conflict', sentence)
    }
    const on = volume.driver === null || (volume.driver === 'disk' && volume.runner_id === null) ? 'drop' : 'delete'
    return await moveVolumes(transaction, on, transaction`id = ${id}`, { now: clock.now() })
  })
  for (const volume of moved) await pushRemoval(parts, volume)
}

/** Requests the removal of the volumes of a deleted organization, after its sandboxes are destroyed. */
export const dropVolumesOf = async (parts: RunningParts, organizationId: string): Promise<void> => {
  const { database, clock } = parts
  const moved = await database.transaction(async (transaction) => {
    const which = transaction`organization_id = ${organizationId} and ${isUnmounted(transaction)}`
    const now = clock.now()
    await moveVolumes(transaction, 'drop', transaction`${which} and ${isNowhere(transaction)}`, { now })
    return await moveVolumes(transaction, 'delete', which, { now })
  })
  for (const volume of moved) await pushRemoval(parts, volume)
}

export { forgetVolumesOf }

/** Number of days for which `GET /volumes` with `includeDeleted` lists a deleted volume. */
const keptDays = 7

export const sweepVolumes = async ({ database, clock }: Pick<Parts, 'database' | 'clock'>): Promise<void> => {
  await forgetDeleted(database.sql, new Date(clock.now().getTime() - keptDays * 86_400_000))
}
