// Creates a sandbox: checks the request, places the sandbox on a runner, stores it, and waits a while for its start.

import { randomUUID } from 'node:crypto'
import type { Actor } from '#src/control/auth/actor.ts'
import { newSecret } from '#src/control/auth/secret.ts'
import { wantBuild } from '#src/control/images/builds.ts'
import { pushImage } from '#src/control/images/images.ts'
import type { Organization } from '#src/control/people/organization.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import {
  checkKept,
  checkLimits,
  checkOpen,
  checkTotals,
  getQuotas,
  type Quota,
  readTtl,
} from '#src/control/quotas/service.ts'
import { findRegion, type Region } from '#src/control/regions/service.ts'
import {
  type HeldRunner,
  hasRoomOn,
  holdRunners,
  isImageComing,
  pickRunner,
  type VolumesNeed,
} from '#src/control/runners/placement.ts'
import type { RunningParts } from '#src/control/running.ts'
import { type HeldSecrets, mountSecrets } from '#src/control/secrets/mounting.ts'
import { checkMade, untilMade } from '#src/control/snapshots/awaiting.ts'
import { withSnapshots } from '#src/control/snapshots/bases.ts'
import { definitionOf } from '#src/control/snapshots/desktop.ts'
import { findSnapshot, markUsed, type Snapshot, snapshotColumn } from '#src/control/snapshots/service.ts'
import type { Piece, Sql, Transaction } from '#src/control/storage/database.ts'
import { type HeldMounts, holdMounts, placeMounts } from '#src/control/volumes/mounting.ts'
import { claimWarm, holdWarm } from '#src/control/warm-pools/claim.ts'
import { noSnapshot, Problem } from '#src/problems.ts'
import type { Definition } from '#src/wire/runner-link.ts'
import type { Size } from '../record/columns.ts'
import { moveFrom } from '../record/lifecycle.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import type { CreateSandbox } from '../record/schemas.ts'
import { findSandboxById, insertSandbox } from '../record/store.ts'
import { checkMayWait, placeWaiting } from './awaiting-image.ts'
import { checkBody, type Wish } from './create-body.ts'
import { findMade, holdKey, onceFor, rememberMade } from './idempotency.ts'
import { untilTaken, waitWhile } from './wait.ts'

const getSnapshot = async (sql: Sql, organizationId: string, idOrName: string): Promise<Snapshot> => {
  const snapshot = await findSnapshot(sql, organizationId, idOrName)
  if (!snapshot) throw noSnapshot(idOrName, 'bad_request')
  if (snapshot.state === 'active') return snapshot
  checkMade(snapshot)
  throw new Problem(
    'snapshot_inactive',
    `The snapshot "${snapshot.name}" is ${snapshot.state}; sandboxes need one that is active.`,
  )
}

const regionIdFor = ({ defaultRegionId }: Organization, { target }: Wish): string => {
  const id = target ?? defaultRegionId
  if (id !== null) return id
  throw new Problem('bad_request', 'target is needed: this organization has no default region')
}

const getRegion = async (sql: Sql, organization: Organization, id: string): Promise<Region> => {
  const region = await findRegion(sql, organization.id, id)
  if (!region) throw new Problem('not_found', `There is no region "${id}".`)
  return region
}

/**
 * The source of the sandbox's files: a snapshot, or a definition whose image may have to be built. `runners`: some runners with the
 * snapshot's image. `warm`: a warm sandbox to claim. The rows of `runners` and `warm` are locked. `named`: the snapshot that the
 * definition comes from, for example `desktop`.
 */
type Origin =
  | { snapshot: Snapshot; warm: SandboxRow | undefined; runners: HeldRunner[] }
  | { definition: Definition; named?: Snapshot }

type Plan = {
  origin: Origin
  regionId: string
  otelEndpoint: string | null
  size: Size
  ttlMinutes: number
  quota: Quota
  /** The volumes that the sandbox will mount, with their rows locked. Undefined: the sandbox mounts no volumes. */
  mounts: HeldMounts | undefined
  secrets: HeldSecrets
}

const smallest: Size = { cpu: 1, memoryGiB: 1, diskGiB: 3 }

const getOrigin = async (
  transaction: Transaction,
  organizationId: string,
  wish: Wish,
  idOrName: string,
  { regionId, volumes }: { regionId: string; volumes: VolumesNeed | undefined },
): Promise<Origin> => {
  if (wish.definition !== undefined) return { definition: wish.definition }
  const hold = async (id: string | Piece, image: string | Piece) => {
    const [warm, runners] = await Promise.all([
      holdWarm(transaction, { organizationId, regionId, snapshotId: id }),
      holdRunners(transaction, { regionId, image, volumes }),
    ])
    return { warm, runners }
  }
  const column = (name: 'id' | 'image') => snapshotColumn(transaction, name, organizationId, idOrName)
  // Both queries find the snapshot by the given id or name, so they can run at the same time.
  const [snapshot, held] = await Promise.all([
    getSnapshot(transaction, organizationId, idOrName),
    hold(column('id'), column('image')),
  ])
  const definition = definitionOf(snapshot)
  if (definition !== undefined) return { definition, named: snapshot }
  const { id, image } = snapshot
  const isOfThis = (held.warm?.snapshot_id ?? id) === id && held.runners.every((runner) => runner.image === image)
  // If the snapshot was renamed between the two queries, `hold` may have locked rows for another snapshot. Then `hold` runs again.
  return { snapshot, ...(isOfThis ? held : await hold(id, image)) }
}

/** Reads everything that the create needs. The queries and the audit row are sent together, to save round trips. */
const plan = async (
  transaction: Transaction,
  parts: RunningParts,
  { organization, tellIn }: Actor,
  wish: Wish,
): Promise<Plan> => {
  const regionId = regionIdFor(organization, wish)
  const snapshot = wish.snapshot ?? parts.settings.defaultSnapshot
  // Volumes are locked first, because they determine which runners can have the sandbox.
  const mounts = await holdMounts(transaction, { organizationId: organization.id, regionId }, wish.volumes)
  const secrets = await mountSecrets(parts, transaction, organization, wish.secrets)
  // The runner is chosen and locked at the end, because creates of other sandboxes wait for the runner's lock.
  const [region, quotaOf, , origin] = await Promise.all([
    getRegion(transaction, organization, regionId),
    getQuotas(transaction, organization, regionId),
    tellIn?.(transaction),
    getOrigin(transaction, organization.id, wish, snapshot, { regionId, volumes: mounts?.need }),
  ])
  const quota = quotaOf('snapshot' in origin ? origin.snapshot.sandboxClass : 'container')
  checkOpen(region, quota)
  const standard = 'snapshot' in origin ? origin.snapshot : (origin.named ?? smallest)
  const size = {
    cpu: wish.cpu ?? standard.cpu,
    memoryGiB: wish.memory ?? standard.memoryGiB,
    diskGiB: wish.disk ?? standard.diskGiB,
  }
  checkLimits(size, quota)
  checkKept(size.diskGiB, wish.autoDeleteInterval, quota)
  return {
    origin,
    regionId,
    otelEndpoint: wish.otelEndpoint ?? region.otelEndpoint,
    size,
    ttlMinutes: readTtl(wish.ttlMinutes, quota),
    quota,
    mounts,
    secrets,
  }
}

/** `from`: the state before a claim, if the sandbox was warm; otherwise null. */
type CreatedSandbox = { row: SandboxRow; from: SandboxRow['state'] | null }

/** Returns the columns about the source of the sandbox's files. */
const columnsOf = async (
  transaction: Transaction,
  { organization }: Actor,
  wish: Wish,
  { origin, regionId }: Plan,
  now: Date,
) => {
  if ('snapshot' in origin) {
    const { id, name, image, osUser, entrypoint, sandboxClass } = origin.snapshot
    const os_user = wish.user ?? osUser
    const sandbox_class = sandboxClass as SandboxRow['sandbox_class']
    return { snapshot_id: id, snapshot: name, image, os_user, entrypoint, sandbox_class, build: null }
  }
  await checkMayWait(transaction, organization.id)
  const { definition, named } = origin
  const based = await withSnapshots(transaction, organization.id, definition)
  return {
    snapshot_id: '',
    snapshot: named?.name ?? '',
    image: await wantBuild(transaction, { organizationId: organization.id, regionId, definition: based }, now),
    // The user is `root` until the config of the image, which contains the user, is known.
    os_user: wish.user ?? 'root',
    entrypoint: null,
    sandbox_class: 'container' as const,
    build: buildOf(definition, wish),
  }
}

const buildOf = ({ dockerfile, contexts }: Definition, { user }: Wish): SandboxRow['build'] => ({
  dockerfile,
  ...(contexts === undefined ? {} : { contextHashes: [...contexts.hashes] }),
  user: user ?? null,
})

const write = async (
  transaction: Transaction,
  parts: RunningParts,
  actor: Actor,
  wish: Wish,
  planned: Plan,
): Promise<CreatedSandbox> => {
  const { organization, user } = actor
  const { origin, regionId, otelEndpoint, size, ttlMinutes, mounts, secrets } = planned
  const { options, clock } = parts
  const id = randomUUID()
  const now = clock.now()
  const by = { kind: 'user', id: user.id } as const
  const wanted = {
    organization_id: organization.id,
    region_id: regionId,
    ...(await columnsOf(transaction, actor, wish, planned, now)),
    cpu: size.cpu,
    memory_gib: size.memoryGiB,
    disk_gib: size.diskGiB,
    env: wish.env,
    ...(secrets.secrets.length === 0 ? {} : secrets),
    labels: wish.labels,
    ...wish.asIs,
    ...wish.network,
    otel_endpoint_override: wish.otelEndpoint,
    otel_endpoint: otelEndpoint,
    auto_stop_interval: wish.autoStopInterval,
    auto_pause_interval: wish.autoPauseInterval,
    auto_archive_interval: wish.autoArchiveInterval,
    auto_delete_interval: wish.autoDeleteInterval,
    auto_destroy_at: ttlMinutes > 0 ? new Date(now.getTime() + ttlMinutes * 60_000) : null,
    preview_token: newSecret(),
    signing_key: newSecret(),
    created_by: user.id,
    created_at: now,
  }
  const { warm, runners } = 'snapshot' in origin ? origin : {}
  // A create uses no warm sandbox if it has volumes, which a running sandbox cannot mount, or if the warm sandbox's runner has no
  // room for the requested size.
  const canClaim =
    mounts === undefined &&
    warm &&
    runners &&
    (await hasRoomOn(transaction, runners, warm.runner_id, size, options.overcommit))
  if (canClaim) {
    return { row: await claimWarm(transaction, parts, warm, wanted, wish.name, by), from: 'started' }
  }
  const place = { regionId, image: wanted.image, volumes: mounts?.need, ...size }
  const isComing = runners !== undefined && (await isImageComing(transaction, runners, place))
  if (isComing) await checkMayWait(transaction, organization.id)
  const waits = runners === undefined || isComing
  const runnerId = waits ? null : await pickRunner(transaction, runners, place, options.overcommit)
  const move = moveFrom(waits ? 'build' : 'create', null)
  const row = {
    ...wanted,
    id,
    name: wish.name ?? id,
    state: move.through,
    desired_state: move.to,
    version: 1,
    generation: 1,
    runner_id: runnerId,
    ...(mounts && { volumes: runnerId ? await placeMounts(transaction, mounts, runnerId, now) : mounts.mounts }),
  }
  return { row: await insertSandbox(transaction, row, by), from: null }
}

/**
 * Returns whether the sandbox's network is restricted. A create that claims a warm sandbox then waits for the runner,
 * because the runner may fail to set the restrictions.
 */
const isClosed = (row: SandboxRow) =>
  row.network_block_all || row.network_allow_list !== null || row.domain_allow_list !== null

/**
 * Requests the image and tries to place the sandbox. If a runner has the image already, the sandbox starts without
 * waiting.
 */
const beginBuild = async (parts: RunningParts, row: SandboxRow): Promise<SandboxRow> => {
  await pushImage(parts, row.image)
  await placeWaiting(parts, { sandboxId: row.id })
  const placed = (await findSandboxById(parts.database.sql, row.id)) ?? row
  return await waitWhile(parts, placed, 'creating', parts.options.createWaitSeconds * 1000)
}

/** Creates a sandbox, or returns the sandbox of an earlier call with this idempotency key. Throws 422 if the bodies differ. */
export const createSandbox = async (
  parts: RunningParts,
  actor: Actor,
  body: CreateSandbox,
  idempotencyKey?: string,
): Promise<SandboxRow> => {
  checkNotSuspended(parts, actor)
  const { database, changes, demand, options } = parts
  const wish = checkBody(body, actor.organization)
  const once = idempotencyKey === undefined ? undefined : onceFor(actor.organization.id, idempotencyKey, body)
  const known = once && (await findMade(database.sql, once))
  if (known) return await waitWhile(parts, known, 'creating', options.createWaitSeconds * 1000)

  const attempt = () =>
    database.keyed.transaction(async (transaction) => {
      if (once) {
        await holdKey(transaction, once)
        const other = await findMade(transaction, once)
        if (other) return { row: other, from: null, isNew: false }
      }
      const planned = await plan(transaction, parts, actor, wish)
      const snapshot = 'snapshot' in planned.origin ? planned.origin.snapshot : undefined
      const made = await write(transaction, parts, actor, wish, planned)
      if (snapshot) await markUsed(transaction, snapshot, made.row.created_at)
      if (once) await rememberMade(transaction, once, made.row.id, made.row.created_at)
      await checkTotals(transaction, { from: null, written: made.row, to: 'started' }, planned.quota.row)
      return { ...made, isNew: true }
    })
  const snapshot = wish.definition === undefined ? (wish.snapshot ?? parts.settings.defaultSnapshot) : undefined
  const { row, from, isNew } = await attempt().catch(async (error) => {
    if (!(error instanceof Problem) || error.code !== 'snapshot_in_making' || snapshot === undefined) throw error
    await untilMade(parts, actor.organization.id, snapshot, options.createWaitSeconds * 1000)
    return await attempt()
  })
  if (isNew && row.snapshot_id !== '') demand.count({ snapshotId: row.snapshot_id, regionId: row.region_id })
  if (isNew) changes.announce(from, row)
  if (isNew && row.state === 'started' && isClosed(row))
    return await untilTaken(parts, row, options.createWaitSeconds * 1000)
  if (isNew && row.state === 'pending_build') return await beginBuild(parts, row)
  return await waitWhile(parts, row, 'creating', options.createWaitSeconds * 1000)
}
