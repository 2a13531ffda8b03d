// The SQL of runners.
import type { Database, Sql } from '#src/control/storage/database.ts'
import type { RunnerCapabilities } from '#src/wire/runner-link.ts'

export type RunnerIdentity = { id: string; regionId: string }

export const findRunnerByKey = async (sql: Sql, keyHash: string): Promise<RunnerIdentity | undefined> => {
  const [row] = await sql<RunnerIdentity[]>`
    select id, region_id as "regionId" from runners where key_hash = ${keyHash} and state <> 'decommissioned'`
  return row
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

export type Hello = {
  address: string
  images: readonly string[]
  capabilities: RunnerCapabilities
  version: string
}

export const writeHello = async (sql: Sql, runnerId: string, hello: Hello, now: Date): Promise<void> => {
  const { cpu, memoryGiB, diskGiB, runtime, runtimeVersion, hardDiskLimit, pause, fork } = hello.capabilities
  await sql`
    update runners set address = ${hello.address}, images = ${hello.images as string[]}, version = ${hello.version},
      cpu = ${cpu}, memory_gib = ${memoryGiB}, disk_gib = ${diskGiB}, runtime = ${runtime},
      runtime_version = ${runtimeVersion}, hard_disk_limit = ${hardDiskLimit},
      pause = ${pause ?? null}, fork = ${fork ?? null},
      state = case when state in ('initializing', 'unresponsive') then 'ready' else state end,
      last_heartbeat_at = ${now}, updated_at = ${now}
    where id = ${runnerId}`
}

/** A runner that was given up is back with its first heartbeat. */
export const writeHeartbeat = async (sql: Sql, runnerId: string, now: Date): Promise<void> => {
  await sql`
    update runners set last_heartbeat_at = ${now}, state = case when state = 'unresponsive' then 'ready' else state end
    where id = ${runnerId}`
}

/** Marks those that have been silent since `before`, and answers their ids. */
export const markUnresponsive = async (sql: Sql, before: Date, now: Date): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    update runners set state = 'unresponsive', updated_at = ${now}
    where state = 'ready' and last_heartbeat_at < ${before} returning id`
  return rows.map(({ id }) => id)
}

/** A snapshot can be used where some runner has its image; the two are brought to agree, whichever way. */
export const reconcileSnapshots = async ({ sql }: Database, now: Date): Promise<void> => {
  await sql`
    update snapshots set state = 'active', error_reason = null, updated_at = ${now}
    where state in ('pending', 'pulling')
      and exists (select from runners where image = any(images) and state <> 'decommissioned')`
  await sql`
    update snapshots set state = 'pulling', updated_at = ${now}
    where state = 'active'
      and not exists (select from runners where image = any(images) and state <> 'decommissioned')`
}

/** The preferred runner if it is ready, else another of the region that is, else the preferred one all the same. */
export const findReadyRunner = async (
  sql: Sql,
  regionId: string,
  preferredId: string | null,
): Promise<string | null> => {
  const [row] = await sql<{ id: string }[]>`
    select id from runners where region_id = ${regionId} and state = 'ready'
    order by id = ${preferredId} desc nulls last, id limit 1`
  return row?.id ?? preferredId
}
