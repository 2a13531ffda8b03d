// Keeps warm pools at their size: creates missing sandboxes, and deletes surplus sandboxes.
//
// Filling has the lowest priority: it waits while callers wait for their own sandboxes. If a create of a caller needs the room of
// unclaimed warm sandboxes, these warm sandboxes are destroyed.

import { randomUUID } from 'node:crypto'
import { newSecret } from '#src/control/auth/secret.ts'
import { reserveRunner } from '#src/control/runners/placement.ts'
import { isClaim, moveFrom } from '#src/control/sandboxes/record/lifecycle.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { maxAutoArchiveInterval } from '#src/control/sandboxes/record/schemas.ts'
import { type By, insertSandbox } from '#src/control/sandboxes/service.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { RunningParts } from '../running.ts'
import { fadedDemand } from './demand.ts'

/**
 * Control starts a warm sandbox only while fewer than this many sandboxes of the region are starting. Sandboxes of callers
 * count too.
 */
const atOnce = 2
const poolsPerSweep = 100
const againAfterSeconds = 60

const by = { kind: 'timer', id: 'warm-pool' } as const

type Destroy = (parts: RunningParts, row: SandboxRow, why: { by: By; reason: string }) => Promise<unknown>

type FillParts = RunningParts & { destroy: Destroy }

type Pool = {
  id: string
  organization_id: string | null
  region_id: string
  wanted: number
  snapshot_id: string
  snapshot: string
  image: string
  sandbox_class: SandboxRow['sandbox_class']
  os_user: string
  cpu: number
  memory_gib: number
  disk_gib: number
  error_reason: string | null
}

/** Returns whether fewer than `atOnce` sandboxes of the region are being created, started or restored. */
const isQuiet = async (transaction: Transaction, { region_id }: Pool): Promise<boolean> => {
  const [busy] = await transaction<{ count: number }[]>`
    select count(*) from sandboxes
    where region_id = ${region_id} and state in ('creating', 'starting', 'restoring') and desired_state = 'started'`
  return (busy?.count ?? 0) < atOnce
}

const make = async (transaction: Transaction, { options, clock }: RunningParts, pool: Pool) => {
  const size = { cpu: pool.cpu, memoryGiB: pool.memory_gib, diskGiB: pool.disk_gib }
  const place = { regionId: pool.region_id, image: pool.image, ...size }
  const runnerId = await reserveRunner(transaction, place, options.overcommit, 'warm')
  const id = randomUUID()
  const move = moveFrom('create', null)
  const row = {
    id,
    // A sandbox of the server's own pools has no organization until it is claimed.
    organization_id: pool.organization_id ?? '',
    name: id,
    region_id: pool.region_id,
    sandbox_class: pool.sandbox_class,
    snapshot_id: pool.snapshot_id,
    snapshot: pool.snapshot,
    image: pool.image,
    os_user: pool.os_user,
    // The create that claims the sandbox sets the entrypoint, so no entrypoint is set here.
    entrypoint: null,
    cpu: pool.cpu,
    memory_gib: pool.memory_gib,
    disk_gib: pool.disk_gib,
    env: {},
    labels: {},
    public: false,
    network_block_all: false,
    network_allow_list: null,
    domain_allow_list: null,
    state: move.through,
    desired_state: move.to,
    version: 1,
    generation: 1,
    runner_id: runnerId,
    warm_pool_id: pool.id,
    auto_stop_interval: 0,
    auto_pause_interval: 0,
    auto_archive_interval: maxAutoArchiveInterval,
    auto_delete_interval: -1,
    auto_destroy_at: null,
    preview_token: newSecret(),
    signing_key: newSecret(),
    created_by: '',
    created_at: clock.now(),
  }
  return await insertSandbox(transaction, row, by)
}

type Next = { made?: SandboxRow | undefined; refused?: Problem; surplus: SandboxRow[] }

/** Returns the error if it is a Problem: no warm sandbox can be made at present. Throws every other error. */
const asRefusal = (error: unknown): Problem => {
  if (error instanceof Problem) return error
  throw error
}

/**
 * Starts one missing warm sandbox if possible, and returns the pool's surplus or broken sandboxes. Does nothing if another process
 * works on the pool.
 */
const step = async (parts: RunningParts, poolId: string): Promise<Next> =>
  await parts.database.transaction(async (transaction): Promise<Next> => {
    const { mostWarm } = parts.options
    const now = parts.clock.now()
    const [pool] = await transaction<Pool[]>`
      select warm_pools.id, warm_pools.organization_id, region_id, snapshot_id, snapshots.name as snapshot, image,
        sandbox_class, os_user, cpu, memory_gib, disk_gib, warm_pools.error_reason,
        case when snapshots.state <> 'active' then 0
          when suspended and (suspended_until is null or suspended_until > ${now}) then 0
          when warm_pools.organization_id is null then least(ceil(${fadedDemand(transaction, now)}), ${mostWarm})
          else warm_pools.size end::integer as wanted
      from warm_pools join snapshots on snapshots.id = snapshot_id
        left join organizations on organizations.id = warm_pools.organization_id
      where warm_pools.id = ${poolId} for no key update of warm_pools skip locked`
    if (pool === undefined) return { surplus: [] }
    const warm = await transaction<(SandboxRow & { runner: string | null })[]>`
      select sandboxes.*, runners.state as runner from sandboxes left join runners on runners.id = runner_id
      where warm_pool_id = ${pool.id} and desired_state <> 'destroyed' and sandboxes.state <> 'destroyed'
      order by sandboxes.created_at desc, sandboxes.id`
    // No create can claim a warm sandbox of a drained runner, so such a sandbox is replaced. A warm sandbox of a silent runner is
    // kept.
    const isBroken = ({ state, runner }: (typeof warm)[number]) =>
      (state !== 'started' && state !== 'creating') || runner === 'disabled'
    const broken = warm.filter(isBroken)
    const sound = warm.filter((row) => !isBroken(row) && row.runner === 'ready')
    const surplus = [...broken, ...sound.slice(pool.wanted)]
    const isMaking = sound.filter(({ state }) => state === 'creating').length >= atOnce
    const isFull = sound.length >= pool.wanted
    const mayMake = !isFull && !isMaking && (await isQuiet(transaction, pool))
    const made = mayMake ? await make(transaction, parts, pool).catch(asRefusal) : undefined
    // Broken and superfluous warm sandboxes are deleted even if no new sandbox can be made.
    if (made instanceof Problem) return { refused: made, surplus }
    // The pool can be filled again, so its error is removed.
    if (pool.error_reason !== null && (isFull || made !== undefined))
      await transaction`update warm_pools set error_reason = null, not_before = null where id = ${pool.id}`
    return { made, surplus }
  })

/** Stores the reason why the pool cannot be filled, and delays the next attempt. */
const complain = async ({ database, clock }: RunningParts, poolId: string, error: unknown): Promise<void> => {
  const now = clock.now()
  const reason =
    error instanceof Problem ? error.message : 'The warm pool could not be filled; the log of control says why.'
  await database.sql`
    update warm_pools set error_reason = ${reason}, not_before = ${new Date(now.getTime() + againAfterSeconds * 1000)}
    where id = ${poolId}`
}

const fill = async (parts: FillParts, poolId: string): Promise<void> => {
  const { changes, log } = parts
  try {
    for (;;) {
      const { made, refused, surplus } = await step(parts, poolId)
      for (const row of surplus) await parts.destroy(parts, row, { by, reason: 'No longer wanted in its warm pool.' })
      if (refused) throw refused
      if (made === undefined) break
      changes.announce(null, made)
    }
  } catch (error) {
    if (!(error instanceof Problem)) log.error({ err: error, poolId }, 'a warm pool could not be filled')
    await complain(parts, poolId, error)
  }
}

/** Deletes warm sandboxes whose pool was deleted. */
const sweepOrphans = async (parts: FillParts): Promise<void> => {
  const rows = await parts.database.sql<SandboxRow[]>`
    select * from sandboxes where warm_pool_id is not null and desired_state <> 'destroyed'
      and not exists (select from warm_pools where id = warm_pool_id) limit 100`
  for (const row of rows) await parts.destroy(parts, row, { by, reason: 'Its warm pool is gone.' })
}

/** Fills every pool as far as possible at present. Filling continues when a warm sandbox has started or was claimed. */
const fillAll = async (parts: FillParts): Promise<void> => {
  const { database, clock } = parts
  const pools = await database.sql<{ id: string }[]>`
    select id from warm_pools where not_before is null or not_before <= ${clock.now()}
    order by demand_at desc limit ${poolsPerSweep}`
  for (const { id } of pools) await fill(parts, id)
  await sweepOrphans(parts)
}

/**
 * Milliseconds between a claim and the refill of the pool, so that the refill does not slow down the new owner's first
 * calls. A further claim restarts the delay, but not after `longestBreathMs`.
 */
const breathMs = 300
const longestBreathMs = 2000

type Filling = {
  /** Fills all pools once. Calls do not overlap: a second call waits until the first has ended. */
  fill: () => Promise<void>
  stop: () => Promise<void>
}

/**
 * Returns an object that fills the pools when `fill` is called, and soon after a warm sandbox was claimed or has
 * started.
 */
export const keepFilling = (given: RunningParts, destroy: Destroy): Filling => {
  const parts = { ...given, destroy }
  const { changes, log } = parts
  let filling: Promise<void> = Promise.resolve()
  let soon: NodeJS.Timeout | undefined
  let waitsSince = 0
  const fill = () => {
    filling = filling.catch(() => {}).then(() => fillAll(parts))
    return filling
  }
  const stopHearing = changes.hear(({ from, to, row }) => {
    const isReady = to === 'started' && row?.warm_pool_id
    const isClaimed = isClaim(from, to)
    if (!isReady && !isClaimed) return
    const now = performance.now()
    if (soon === undefined) waitsSince = now
    else if (isReady || now - waitsSince > longestBreathMs) return
    clearTimeout(soon)
    soon = setTimeout(() => {
      soon = undefined
      fill().catch((error) =>
        log.warn({ err: error }, 'the warm pools could not be filled; the next sweep tries again'),
      )
    }, breathMs)
  })
  return {
    fill,
    stop: async () => {
      stopHearing()
      clearTimeout(soon)
      await filling.catch(() => {})
    },
  }
}
