// Creates a sandbox: checks what is asked, finds it a place, writes it, and waits a while for it to run.
import { randomUUID } from 'node:crypto'
import type { Organization } from '#src/control/organizations/organization.ts'
import { findRegion } from '#src/control/regions/service.ts'
import { reserveRunner } from '#src/control/runners/placement.ts'
import { findSnapshot, markUsed, type Snapshot } from '#src/control/snapshots/service.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { checkBody, type Wish } from './create-body.ts'
import { findMade, holdKey, onceFor, rememberMade } from './idempotency.ts'
import { moveFrom } from './lifecycle.ts'
import type { Actor, SandboxParts } from './parts.ts'
import type { SandboxRow } from './sandbox.ts'
import type { CreateSandbox } from './schemas.ts'
import { newSecret } from './secret.ts'
import { checkLimits, type Size } from './size.ts'
import { insertSandbox } from './store.ts'
import { checkNotSuspended } from './suspension.ts'
import { waitWhile } from './wait.ts'
import { claimWarm } from './warm-claim.ts'

const getSnapshot = async (parts: SandboxParts, organizationId: string, idOrName: string): Promise<Snapshot> => {
  const snapshot = await findSnapshot(parts, organizationId, idOrName)
  if (!snapshot) throw new Problem('bad_request', `There is no snapshot "${idOrName}".`)
  if (snapshot.state === 'active') return snapshot
  throw new Problem(
    'bad_request',
    `The snapshot "${snapshot.name}" is ${snapshot.state}; sandboxes need one that is active.`,
  )
}

const getRegionId = async (parts: SandboxParts, organization: Organization, given: string | undefined) => {
  const id = given ?? organization.defaultRegionId
  if (id === null) throw new Problem('bad_request', 'target is needed: this organization has no default region')
  const region = await findRegion(parts, organization.id, id)
  if (!region) throw new Problem('not_found', `There is no region "${id}".`)
  return region.id
}

type Plan = { snapshot: Snapshot; regionId: string; size: Size }

/** Everything that can be found out before a runner is held. */
const plan = async (parts: SandboxParts, { organization }: Actor, wish: Wish): Promise<Plan> => {
  const [snapshot, regionId] = await Promise.all([
    getSnapshot(parts, organization.id, wish.snapshot ?? parts.settings.defaultSnapshot),
    getRegionId(parts, organization, wish.target),
  ])
  const size = {
    cpu: wish.cpu ?? snapshot.cpu,
    memoryGiB: wish.memory ?? snapshot.memoryGiB,
    diskGiB: wish.disk ?? snapshot.diskGiB,
  }
  checkLimits(size, organization)
  return { snapshot, regionId, size }
}

/** `from`: the state that a warm sandbox was claimed in. */
type Made = { row: SandboxRow; from: SandboxRow['state'] | null }

const write = async (
  transaction: Transaction,
  parts: SandboxParts,
  { organization, user }: Actor,
  wish: Wish,
  { snapshot, regionId, size }: Plan,
): Promise<Made> => {
  const { options, changes, clock } = parts
  const id = randomUUID()
  const now = clock.now()
  const by = { kind: 'user', id: user.id } as const
  const wanted = {
    organization_id: organization.id,
    region_id: regionId,
    sandbox_class: snapshot.sandboxClass as SandboxRow['sandbox_class'],
    snapshot_id: snapshot.id,
    snapshot: snapshot.name,
    image: snapshot.image,
    os_user: wish.user ?? snapshot.osUser,
    cpu: size.cpu,
    memory_gib: size.memoryGiB,
    disk_gib: size.diskGiB,
    env: wish.env,
    labels: wish.labels,
    public: wish.isPublic,
    ...wish.network,
    auto_stop_interval: wish.autoStopInterval,
    auto_pause_interval: wish.autoPauseInterval,
    auto_archive_interval: wish.autoArchiveInterval,
    auto_delete_interval: wish.autoDeleteInterval,
    auto_destroy_at: wish.ttlMinutes > 0 ? new Date(now.getTime() + wish.ttlMinutes * 60_000) : null,
    preview_token: newSecret(),
    signing_key: newSecret(),
    created_by: user.id,
    created_at: now,
  }
  const claimed = await claimWarm(transaction, parts, wanted, wish.name, by)
  if (claimed) return { row: claimed, from: 'started' }
  const runnerId = await reserveRunner(transaction, { regionId, image: snapshot.image, ...size }, options.overcommit)
  const move = moveFrom('create', null)
  const row = {
    ...wanted,
    id,
    name: wish.name ?? id,
    state: move.through,
    desired_state: move.to,
    version: 1,
    generation: 1,
    runner_id: runnerId,
  }
  return { row: await insertSandbox(transaction, row, by, changes.origin), from: null }
}

/** The same key with the same body answers the same sandbox; with another body it is a mistake of the caller (422). */
export const createSandbox = async (
  parts: SandboxParts,
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

  const planned = await plan(parts, actor, wish)
  demand.count({ snapshotId: planned.snapshot.id, regionId: planned.regionId })
  const { row, from, isNew } = await database.transaction(async (transaction) => {
    if (once) {
      await holdKey(transaction, once)
      const other = await findMade(transaction, once)
      if (other) return { row: other, from: null, isNew: false }
    }
    const made = await write(transaction, parts, actor, wish, planned)
    await markUsed(transaction, planned.snapshot, made.row.created_at)
    if (once) await rememberMade(transaction, once, made.row)
    return { ...made, isNew: true }
  })
  if (isNew) changes.announce(from, row)
  return await waitWhile(parts, row, 'creating', options.createWaitSeconds * 1000)
}
