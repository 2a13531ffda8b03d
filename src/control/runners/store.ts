// The SQL of runners.

import { statesHoldingDisk } from '#src/control/sandboxes/record/lifecycle.ts'
import type { Sql, Transaction } from '#src/control/storage/database.ts'
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

/** The runner that belongs to a key, made if there is none yet. */
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

/** When, and since when it would have been silent. */
type Heard = { silentBefore: Date; now: Date }

type Hello = {
  address: string
  images: readonly string[]
  capabilities: RunnerCapabilities
  version: string
}

export const writeHello = async (
  sql: Sql,
  runnerId: string,
  hello: Hello,
  { silentBefore, now }: Heard,
): Promise<void> => {
  const { cpu, memoryGiB, diskGiB, runtime, runtimeVersion, hardDiskLimit, pause, fork } = hello.capabilities
  await sql`
    with used as (${forgiveSilence(sql, { runnerId, silentBefore, now })})
    update runners set address = ${hello.address}, images = ${hello.images as string[]}, version = ${hello.version},
      cpu = ${cpu}, memory_gib = ${memoryGiB}, disk_gib = ${diskGiB}, runtime = ${runtime},
      runtime_version = ${runtimeVersion}, hard_disk_limit = ${hardDiskLimit},
      pause = ${pause ?? null}, fork = ${fork ?? null},
      state = case when state in ('initializing', 'unresponsive') then 'ready' else state end, is_silent = false,
      last_heartbeat_at = ${now}, updated_at = ${now}
    where id = ${runnerId}`
}

/** A runner that was given up is back with its first heartbeat. */
export const writeHeartbeat = async (sql: Sql, runnerId: string, { silentBefore, now }: Heard): Promise<void> => {
  await sql`
    with used as (${forgiveSilence(sql, { runnerId, silentBefore, now })})
    update runners set last_heartbeat_at = ${now}, is_silent = false,
      state = case when state = 'unresponsive' then 'ready' else state end
    where id = ${runnerId}`
}

/** Marks those that have been silent since `before`, drained ones too, and answers their ids. */
export const markUnresponsive = async (sql: Sql, before: Date, now: Date): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    update runners set is_silent = true, state = case when state = 'ready' then 'unresponsive' else state end, updated_at = ${now}
    where state in ('ready', 'disabled') and not is_silent and last_heartbeat_at < ${before} returning id`
  return rows.map(({ id }) => id)
}

/** Address of a shared runner that the server's own gate reaches, in this region if there is one. */
export const findSharedRunnerAddress = async (sql: Sql, regionId: string | null): Promise<string | undefined> => {
  const [row] = await sql<{ address: string }[]>`
    select address from runners join regions on regions.id = runners.region_id
    where regions.organization_id is null and runners.state = 'ready' and address is not null
    order by region_id = ${regionId} desc nulls last, runners.id limit 1`
  return row?.address
}

/** The organization that a region belongs to, if it is not everybody's. */
export const findOwnerOfRegion = async (sql: Sql, regionId: string): Promise<string | undefined> => {
  const [row] = await sql<{ owner: string | null }[]>`
    select organization_id as owner from regions where id = ${regionId}`
  return row?.owner ?? undefined
}

/** A runner of the region, and rather one that is ready, and rather the preferred one. Null where there is none at all. */
export const findAnyRunner = async (sql: Sql, regionId: string, preferredId: string | null): Promise<string | null> => {
  const [row] = await sql<{ id: string }[]>`
    select id from runners where region_id = ${regionId} and state <> 'decommissioned'
    order by state = 'ready' desc, id = ${preferredId} desc nulls last, id limit 1`
  return row?.id ?? null
}

type RunnerView = RunnerIdentity & {
  state: string
  cpu: number
  memoryGiB: number
  diskGiB: number
  version: string
  lastHeartbeatAt: Date | null
  sandboxes: number
  warm: number
}

export const listRunners = async (sql: Sql): Promise<RunnerView[]> =>
  await sql<RunnerView[]>`
    select runners.id, runners.region_id as "regionId", runners.state, runners.cpu, runners.memory_gib as "memoryGiB",
      runners.disk_gib as "diskGiB", runners.version, last_heartbeat_at as "lastHeartbeatAt", count(sandboxes.id)::int as sandboxes,
      count(sandboxes.warm_pool_id)::int as warm
    from runners left join sandboxes on runner_id = runners.id and sandboxes.state in ${sql(statesHoldingDisk)}
    where runners.state <> 'decommissioned' group by runners.id order by runners.created_at, runners.id limit 1000`

/** Throws where the id or the key is taken. */
export const insertRunner = async (
  sql: Sql,
  { id, regionId, keyHash }: RunnerIdentity & { keyHash: string },
  now: Date,
): Promise<void> => {
  await sql`
    insert into runners (id, region_id, key_hash, created_at, updated_at)
    values (${id}, ${regionId}, ${keyHash}, ${now}, ${now})`
}

/** Nothing is placed there until the transaction ends. */
export const lockRunner = async (transaction: Transaction, id: string): Promise<boolean> => {
  const { count } = await transaction`select from runners where id = ${id} and state <> 'decommissioned' for update`
  return count > 0
}

/** Answers whether there is such a runner. One that is taken back is what it would be if it had not been drained. */
export const writeDrained = async (sql: Sql, id: string, isDrained: boolean, now: Date): Promise<boolean> => {
  const { count } = await sql`
    update runners set updated_at = ${now}, state = case
      when ${isDrained} then 'disabled'
      when state <> 'disabled' then state
      when last_heartbeat_at is null then 'initializing'
      when is_silent then 'unresponsive'
      else 'ready' end
    where id = ${id} and state <> 'decommissioned'`
  return count > 0
}

export const listGoneWithSandboxes = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select id from runners
    where state = 'decommissioned' and exists (select from sandboxes where runner_id = runners.id) limit 100`
  return rows.map(({ id }) => id)
}

/** The row stays, since it says what was where. */
export const decommission = async (transaction: Transaction, id: string, now: Date): Promise<void> => {
  await transaction`
    update runners set state = 'decommissioned', images = '{}', address = null, key_hash = 'gone: ' || id,
      updated_at = ${now}
    where id = ${id}`
}

/** Deletes the runners of a region that goes. */
export const deleteRunnersIn = async (transaction: Transaction, regionId: string): Promise<void> => {
  await transaction`delete from runners where region_id = ${regionId}`
}
