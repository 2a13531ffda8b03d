// The warm pools that organizations ask for. This file stores the pools; `fill.ts` fills them.

import type { Actor } from '#src/control/auth/actor.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import { checkLimits, checkOpen, getQuota } from '#src/control/quotas/service.ts'
import { findRegion } from '#src/control/regions/service.ts'
import { isBuiltPerOrganization } from '#src/control/snapshots/desktop.ts'
import { findSnapshot } from '#src/control/snapshots/service.ts'
import { Problem } from '#src/problems.ts'
import type { RunningParts } from '../running.ts'
import type { CreateWarmPool } from './schemas.ts'
import { findPool, insertPool, listPools, removePool, type WarmPool, writeSize } from './store.ts'

const asView = (pool: WarmPool) => ({
  id: pool.id,
  organizationId: pool.organizationId ?? '',
  snapshot: pool.snapshot,
  target: pool.regionId,
  pool: pool.size,
  currentSize: pool.currentSize,
  cpu: pool.cpu,
  mem: pool.memoryGiB,
  disk: pool.diskGiB,
  osUser: pool.osUser,
  env: {},
  errorReason: pool.errorReason,
  createdAt: pool.createdAt.toISOString(),
  updatedAt: pool.updatedAt.toISOString(),
})

export const viewWarmPools = async ({ database }: RunningParts, { organization }: Actor) =>
  (await listPools(database.sql, organization.id)).map(asView)

/**
 * Finds the region and snapshot of a pool. Throws if the organization cannot create a sandbox from this snapshot in this region.
 */
const getPlace = async ({ database }: RunningParts, { organization }: Actor, idOrName: string, regionId: string) => {
  const { sql } = database
  const [snapshot, region] = await Promise.all([
    findSnapshot(sql, organization.id, idOrName),
    findRegion(sql, organization.id, regionId),
  ])
  if (region === undefined) throw new Problem('not_found', `There is no region "${regionId}".`)
  if (snapshot?.state !== 'active') throw new Problem('bad_request', `There is no active snapshot "${idOrName}".`)
  if (isBuiltPerOrganization(snapshot))
    throw new Problem(
      'bad_request',
      `Warm sandboxes need a snapshot with an image, and "${snapshot.name}" is a definition: create a snapshot of it first.`,
    )
  const quota = await getQuota(sql, organization, region.id, snapshot.sandboxClass)
  checkOpen(region, quota)
  checkLimits(snapshot, quota)
  return { snapshotId: snapshot.id, regionId }
}

const getPool = async ({ database }: RunningParts, { organization }: Actor, id: string): Promise<WarmPool> => {
  const pool = await findPool(database.sql, organization.id, id)
  if (pool === undefined) throw new Problem('not_found', 'There is no such warm pool.')
  return pool
}

export const createWarmPool = async (parts: RunningParts, actor: Actor, body: CreateWarmPool) => {
  checkNotSuspended(parts, actor)
  const { database, clock } = parts
  const { organization } = actor
  const regionId = body.target ?? organization.defaultRegionId
  if (regionId === null) throw new Problem('bad_request', 'target is needed: this organization has no default region')
  const place = await getPlace(parts, actor, body.snapshot, regionId)
  const pool = { organizationId: organization.id, ...place, size: body.pool }
  const id = await insertPool(database.sql, pool, clock.now())
  return asView(await getPool(parts, actor, id))
}

/** Changes the size of a pool. With size 0, all unclaimed sandboxes of the pool are deleted. */
export const resizeWarmPool = async (parts: RunningParts, actor: Actor, id: string, size: number) => {
  checkNotSuspended(parts, actor)
  const pool = await getPool(parts, actor, id)
  if (size > pool.size) await getPlace(parts, actor, pool.snapshotId, pool.regionId)
  await writeSize(parts.database.sql, id, size, parts.clock.now())
  return asView(await getPool(parts, actor, id))
}

/** Deletes a pool; the next sweep deletes its sandboxes that nobody has claimed. */
export const deleteWarmPool = async (parts: RunningParts, actor: Actor, id: string): Promise<void> => {
  await getPool(parts, actor, id)
  await removePool(parts.database.sql, id)
}
