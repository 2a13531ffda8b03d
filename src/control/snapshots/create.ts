// Creates a snapshot from an image or a definition: stores the request and replies. Runners then make the image.

import { randomUUID } from 'node:crypto'
import type { Actor } from '#src/control/auth/actor.ts'
import { insertImage } from '#src/control/images/image-store.ts'
import { pushImage } from '#src/control/images/images.ts'
import { readSource } from '#src/control/images/source.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import { checkLimits, checkOpen, getQuota } from '#src/control/quotas/service.ts'
import { findRegion } from '#src/control/regions/service.ts'
import { Problem } from '#src/problems.ts'
import type { RunningParts } from '../running.ts'
import { withSnapshots } from './bases.ts'
import { checkSnapshotName } from './name.ts'
import { checkSnapshotQuota } from './quota.ts'
import type { CreateSnapshot } from './schemas.ts'
import type { Snapshot } from './store.ts'
import { insertSnapshot } from './write.ts'

const smallest = { cpu: 1, memoryGiB: 1, diskGiB: 3 }

export const createSnapshot = async (parts: RunningParts, actor: Actor, body: CreateSnapshot): Promise<Snapshot> => {
  checkNotSuspended(parts, actor)
  const { database, clock } = parts
  const { organization } = actor
  if (body.gpu) throw new Problem('unprocessable', 'gpu: not supported yet')
  if (body.sandboxClass !== undefined && body.sandboxClass !== 'container') {
    throw new Problem('unprocessable', `No runner here has the class ${body.sandboxClass}.`)
  }
  const name = checkSnapshotName(body.name)
  const read = readSource(body, organization.id)
  const source = read.kind === 'definition' ? await withSnapshots(database.sql, organization.id, read) : read
  const size = {
    cpu: body.cpu ?? smallest.cpu,
    memoryGiB: body.memory ?? smallest.memoryGiB,
    diskGiB: body.disk ?? smallest.diskGiB,
  }
  const regionId = body.regionId ?? organization.defaultRegionId
  if (regionId === null) throw new Problem('bad_request', 'regionId is needed: this organization has no default region')
  const region = await findRegion(parts.database.sql, organization.id, regionId)
  if (!region) throw new Problem('not_found', `There is no region "${regionId}".`)
  const quota = await getQuota(database.sql, organization, regionId, 'container')
  checkOpen(region, quota)
  checkLimits(size, quota)

  const now = clock.now()
  const image = `img-${randomUUID()}`
  const snapshot = await database.transaction(async (transaction) => {
    const made = await insertSnapshot(
      transaction,
      source.kind === 'definition' ? 'build' : 'bring',
      {
        organizationId: organization.id,
        name,
        image,
        imageName: body.imageName ?? null,
        // The snapshot's user is `root` until the image's config, which contains the user, is known.
        osUser: 'root',
        entrypoint: body.entrypoint ?? null,
        ...size,
        ...(source.kind === 'definition' ? { dockerfile: source.dockerfile } : {}),
      },
      now,
    )
    const most = await checkSnapshotQuota(transaction, organization.id)
    const mostGiB = Math.min(size.diskGiB, Math.max(most, 1))
    await insertImage(transaction, { name: image, source, regionId, runnerId: null, base: null, maxGiB: mostGiB }, now)
    const contexts = source.kind === 'definition' ? source.contexts : undefined
    return { ...made, regionId, ...(contexts ? { contextHashes: [...contexts.hashes] } : {}) }
  })
  await pushImage(parts, image)
  return snapshot
}
