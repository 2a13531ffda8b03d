// The SQL of runners.

import { statesHoldingCompute, statesHoldingDisk } from '#src/control/sandboxes/record/lifecycle.ts'
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import { isUnsynced } from '#src/control/storage/unsynced.ts'
import type { GateOfHost } from '#src/wire/hosts.ts'
import type { ImageStorage } from '#src/wire/image-storage.ts'
import type { RunnerCapabilities } from '#src/wire/runner-link.ts'
import { forgiveSilence } from '../sandboxes/service.ts'

export type RunnerIdentity = { id: string; regionId: string }

export const findRunnerByKey = async (sql: Sql, keyHash: string): Promise<RunnerIdentity | undefined> => {
  const [row] = await sql<RunnerIdentity[]>`
    select id, region_id as "regionId" from runners where key_hash = ${keyHash} and state <> 'decommissioned'`
  return row
}

export const findDatabaseId = async (sql: Sql): Promise<string> => {
  const [row] = await sql<{ id: string }[]>`select id from database_id`
  return row!.id
}

/** Inserts the runner. If the runner has a row already, only the hash of its key is replaced. */
export const ensureRunner = async (
  sql: Sql,
  runner: RunnerIdentity & { keyHash: string },
  now: Date,
): Promise<void> => {
  await sql`
    insert into runners (id, region_id, key_hash, created_at, updated_at)
    values (${runner.id}, ${runner.regionId}, ${runner.keyHash}, ${now}, ${now})
    on conflict (id) do update set key_hash = excluded.key_hash`
}

/**
 * `now`: the time of the present heartbeat. `silentBefore`: if the previous heartbeat is older than this time, the runner was
 * silent.
 */
type HeartbeatTimes = { silentBefore: Date; now: Date }

type Hello = {
  address: string
  images: readonly string[]
  capabilities: RunnerCapabilities
  version: string
  gate?: GateOfHost
}

export const writeHello = async (
  sql: Sql,
  runnerId: string,
  hello: Hello,
  { silentBefore, now }: HeartbeatTimes,
): Promise<void> => {
  const { cpu, memoryGiB, diskGiB, runtime, runtimeVersion, hardDiskLimit, pause, fork, volumes, sharesStore } =
    hello.capabilities
  await sql`
    with used as (${forgiveSilence(sql, { runnerId, silentBefore, now })})
    update runners set address = ${hello.address}, images = ${hello.images as string[]}, version = ${hello.version},
      cpu = ${cpu}, memory_gib = ${memoryGiB}, disk_gib = ${diskGiB}, runtime = ${runtime},
      runtime_version = ${runtimeVersion}, hard_disk_limit = ${hardDiskLimit},
      gate_id = ${hello.gate?.id ?? null}, gate_address = ${hello.gate?.address ?? null},
      gate_public_url = ${hello.gate?.publicUrl ?? null}, shares_store = ${sharesStore ?? false}, pause = ${pause ?? null}, fork = ${fork ?? null}, volumes = ${volumes ?? null},
      state = case when state in ('initializing', 'unresponsive') then 'ready' else state end, is_silent = false, lost_at = null,
      last_heartbeat_at = ${now}, updated_at = ${now}
    where id = ${runnerId}`
}

/** Stores a heartbeat. The first heartbeat of a silent runner makes it ready again. */
export const writeHeartbeat = async (
  sql: Sql,
  runnerId: string,
  { imageStorage, silentBefore, now }: HeartbeatTimes & { imageStorage: ImageStorage | undefined },
): Promise<void> => {
  await sql`
    with used as (${forgiveSilence(sql, { runnerId, silentBefore, now })})
    update runners set last_heartbeat_at = ${now}, is_silent = false, lost_at = null,
      image_storage = ${imageStorage === undefined ? null : sql.json(imageStorage)},
      state = case when state = 'unresponsive' then 'ready' else state end
    where id = ${runnerId} and ${isUnsynced(sql)}`
}

/**
 * Marks runners without a heartbeat since `before` as silent, drained runners included. Returns the runners that it has
 * marked.
 */
export const markUnresponsive = (sql: Sql, before: Date, now: Date): Promise<RunnerIdentity[]> =>
  sql<RunnerIdentity[]>`
    update runners set is_silent = true, state = case when state = 'ready' then 'unresponsive' else state end, updated_at = ${now}
    where state in ('ready', 'disabled') and not is_silent and last_heartbeat_at < ${before}
    returning id, region_id as "regionId"`

/**
 * Finds a ready runner of a shared region, and returns the addresses at which gates reach that runner. Prefers runners of
 * `regionId`.
 */
export const findSharedRunner = async (
  sql: Sql,
  regionId: string | null,
): Promise<{ address: string; gateId: string | null } | undefined> => {
  const [row] = await sql<{ address: string; gateId: string | null }[]>`
    select address, gate_id as "gateId" from runners join regions on regions.id = runners.region_id
    where regions.organization_id is null and runners.state = 'ready' and address is not null
    order by region_id = ${regionId} desc nulls last, runners.id limit 1`
  return row
}

/** Returns the organization that owns a region. Undefined for a shared region. */
export const findOwnerOfRegion = async (sql: Sql, regionId: string): Promise<string | undefined> => {
  const [row] = await sql<{ owner: string | null }[]>`
    select organization_id as owner from regions where id = ${regionId}`
  return row?.owner ?? undefined
}

/**
 * Finds a runner of the region, a ready one if possible. Among equally good runners, prefers `preferredId`. Returns null if the
 * region has no runner.
 */
export const findAnyRunner = async (sql: Sql, regionId: string, preferredId: string | null): Promise<string | null> => {
  const [row] = await sql<{ id: string }[]>`
    select id from runners where region_id = ${regionId} and state <> 'decommissioned'
    order by state = 'ready' desc, id = ${preferredId} desc nulls last, id limit 1`
  return row?.id ?? null
}

/** Lists the ids of runners that can remove a volume from the shared directory of a region. */
export const listRemovers = async (sql: Sql, regionId: string | null): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select id from runners where region_id = ${regionId} and volumes = 'directory' and state <> 'decommissioned' limit 1000`
  return rows.map(({ id }) => id)
}

export type RunnerView = RunnerIdentity & {
  state: 'initializing' | 'ready' | 'disabled' | 'unresponsive'
  cpu: number
  memoryGiB: number
  diskGiB: number
  version: string
  lastHeartbeatAt: Date | null
  createdAt: Date
  updatedAt: Date
  started: number
  allocatedCpu: number
  allocatedMemoryGiB: number
  allocatedDiskGiB: number
  sandboxes: number
  warm: number
  isEmptied: boolean
  silentSince: Date | null
  lostAt: Date | null
  /** If the runner is lost, the number of its sandboxes in state `error`, whatever the cause. Otherwise 0. */
  givenUp: number
  leftovers: number
}

/**
 * Lists at most 1,000 runners, oldest first. With `id` or `regionId`, lists only that runner or the runners of that
 * region.
 */
export const listRunners = async (
  sql: Sql,
  { id = null, regionId = null }: { id?: string | null; regionId?: string | null } = {},
): Promise<RunnerView[]> =>
  await sql<RunnerView[]>`
    select runners.id, runners.region_id as "regionId", runners.state, runners.cpu, runners.memory_gib as "memoryGiB",
      runners.disk_gib as "diskGiB", runners.version, last_heartbeat_at as "lastHeartbeatAt",
      runners.created_at as "createdAt", runners.updated_at as "updatedAt",
      count(sandboxes.id) filter (where sandboxes.state = 'started')::int as started,
      coalesce(sum(sandboxes.cpu) filter (where sandboxes.state in ${sql(statesHoldingCompute)}), 0)::float8 as "allocatedCpu",
      coalesce(sum(sandboxes.memory_gib) filter (where sandboxes.state in ${sql(statesHoldingCompute)}), 0)::float8
        as "allocatedMemoryGiB",
      coalesce(sum(sandboxes.disk_gib), 0)::float8 as "allocatedDiskGiB",
      count(sandboxes.id)::int as sandboxes, count(sandboxes.warm_pool_id)::int as warm,
      is_emptied as "isEmptied", case when is_silent then last_heartbeat_at end as "silentSince", lost_at as "lostAt",
      count(sandboxes.id) filter (where lost_at is not null and sandboxes.state = 'error')::int as "givenUp",
      (select count(*)::int from leftovers where leftovers.runner_id = runners.id) as leftovers
    from runners left join sandboxes on runner_id = runners.id and sandboxes.state in ${sql(statesHoldingDisk)}
    where runners.state <> 'decommissioned' and (${id}::text is null or runners.id = ${id})
      and (${regionId}::text is null or runners.region_id = ${regionId})
    group by runners.id order by runners.created_at, runners.id limit 1000`

/** Inserts a runner. Throws if the id or the key is in use. */
export const insertRunner = async (
  sql: Sql,
  { id, regionId, keyHash }: RunnerIdentity & { keyHash: string },
  now: Date,
): Promise<void> => {
  await sql`
    insert into runners (id, region_id, key_hash, created_at, updated_at)
    values (${id}, ${regionId}, ${keyHash}, ${now}, ${now})`
}

/** Replaces the hash of a runner's key. Returns the runner's region. */
export const replaceKey = async (sql: Sql, id: string, keyHash: string, now: Date): Promise<string> => {
  const [row] = await sql<{ regionId: string }[]>`
    update runners set key_hash = ${keyHash}, updated_at = ${now} where id = ${id} returning region_id as "regionId"`
  return row!.regionId
}

/** Locks the runner, so that no sandbox is placed on it until the transaction ends. */
export const lockRunner = async (transaction: Transaction, id: string): Promise<boolean> => {
  const { count } = await transaction`select from runners where id = ${id} and state <> 'decommissioned' for update`
  return count > 0
}

/**
 * `isDrained`: false ends the draining, and heartbeats decide the state again. `isEmptied`: control also moves the
 * sandboxes to other runners. Returns whether the runner exists.
 */
export const writeDrained = async (
  sql: Sql,
  id: string,
  { isDrained, isEmptied = false }: { isDrained: boolean; isEmptied?: boolean },
  now: Date,
): Promise<boolean> => {
  const { count } = await sql`
    update runners set updated_at = ${now}, is_emptied = ${isDrained && isEmptied}, state = case
      when ${isDrained} then 'disabled'
      when state <> 'disabled' then state
      when last_heartbeat_at is null then 'initializing'
      when is_silent then 'unresponsive'
      else 'ready' end
    where id = ${id} and state <> 'decommissioned'`
  return count > 0
}

/** Lists the runners that are being emptied and are not silent. */
export const listEmptied = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select id from runners where is_emptied and state = 'disabled' and not is_silent order by id`
  return rows.map(({ id }) => id)
}

export const findEmptied = async (sql: Sql, id: string): Promise<boolean> =>
  (await sql`select from runners where id = ${id} and is_emptied`).count > 0

/** Returns whether another runner in this runner's region is ready. `withStore`: only if both runners share an archive store. */
export const hasReadyNeighbour = async (
  sql: Sql,
  id: string | null,
  withStore?: 'with its store',
): Promise<boolean> => {
  const found = await sql`
    select from runners own join runners other on other.region_id = own.region_id and other.id <> own.id
    where own.id = ${id} and other.state = 'ready'
      ${withStore ? sql`and own.shares_store and other.shares_store` : sql``} limit 1`
  return found.count > 0
}

export const listGoneWithSandboxes = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select id from runners
    where state = 'decommissioned' and exists (select from sandboxes where runner_id = runners.id) limit 100`
  return rows.map(({ id }) => id)
}

/** Takes a runner out of service. Keeps its row, because other rows still name the runner. */
export const decommission = async (transaction: Transaction, id: string, now: Date): Promise<void> => {
  await transaction`
    update runners set state = 'decommissioned', images = '{}', address = null, gate_id = null,
      gate_address = null, gate_public_url = null, key_hash = 'gone: ' || id,
      updated_at = ${now}
    where id = ${id}`
}

/** Deletes the runners of a region that is being deleted. */
export const deleteRunnersIn = async (transaction: Transaction, regionId: string): Promise<void> => {
  await transaction`delete from runners where region_id = ${regionId}`
}
