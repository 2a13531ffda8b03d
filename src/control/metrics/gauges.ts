// Gauges of the whole server, read from the database. Their queries join tables of many modules.

import { Counter, Gauge, type Registry } from 'prom-client'
import {
  stateRows,
  statesAwaitingImage,
  statesHoldingCompute,
  statesHoldingDisk,
} from '#src/control/sandboxes/record/lifecycle.ts'
import { statesInMaking } from '#src/control/snapshots/lifecycle.ts'
import type { Sql } from '#src/control/storage/database.ts'
import { givenBackReasons, type ImageStorage, imageKinds } from '#src/wire/image-storage.ts'

const mostRunners = 200

const runnerStates = ['initializing', 'ready', 'disabled', 'unresponsive', 'lost']

type StateCount = { state: string; isWarm: boolean; count: number; oldestSeconds: number }
type Queue = { queue: string; length: number; oldestSeconds: number }
type RunnerRow = Record<'id' | 'state', string> & { isLost: boolean; isSilent: boolean } & Record<
    'cpu' | 'memory' | 'disk' | 'promisedCpu' | 'promisedMemory' | 'promisedDisk' | 'silentSeconds',
    number
  > & {
    imageStorage: ImageStorage | null
  }

const countStates = (sql: Sql, now: Date): Promise<StateCount[]> => sql`
  select state, warm_pool_id is not null as "isWarm", count(*),
    extract(epoch from ${now}::timestamptz - min(state_changed_at))::float8 as "oldestSeconds"
  from sandboxes where state <> 'destroyed' group by 1, 2`

const measureQueues = (sql: Sql, now: Date): Promise<Queue[]> => {
  const measured = sql`count(*) as length, coalesce(extract(epoch from ${now}::timestamptz - min(since)), 0)::float8 as "oldestSeconds"`
  return sql`
    select 'webhooks' as queue, ${measured} from (
      select at as since from webhook_messages where not is_dispatched
      union all
      select message.at from webhook_deliveries delivery join webhook_messages message on message.id = message_id
      where delivery.state = 'waiting') waiting
    union all select 'mail', ${measured} from (select created_at as since from mail_outbox) waiting
    union all select 'builds', ${measured} from (
      select state_changed_at as since from sandboxes where state in ${sql(statesAwaitingImage)}) waiting
    union all select 'images', ${measured} from (
      select created_at as since from snapshots where state in ${sql(statesInMaking)}) waiting
    union all select 'saves', ${measured} from (
      select state_changed_at as since from sandboxes where save_state = 'wanted') waiting
    -- What a runner was asked for and has not yet said that it is.
    union all select 'reconcile', ${measured} from (
      select state_changed_at as since from sandboxes
      where runner_id is not null and state not in ${sql(statesAwaitingImage)}
        and (stuck_at is not null or (state = 'destroyed' and gone_at is null))) waiting`
}

const measureSaved = (sql: Sql): Promise<[{ bytes: number }]> => sql`
  select coalesce(sum(archive_stored_bytes), 0)::float8 as bytes from sandboxes where save_state = 'saved'`

const measureRunners = (sql: Sql, now: Date): Promise<RunnerRow[]> => sql`
  select runners.id, runners.state, is_silent as "isSilent", lost_at is not null as "isLost", runners.cpu, runners.memory_gib as memory, runners.disk_gib as disk,
    runners.image_storage as "imageStorage",
    coalesce(sum(held.cpu) filter (where held.state in ${sql(statesHoldingCompute)}), 0)::float8 as "promisedCpu",
    coalesce(sum(held.memory_gib) filter (where held.state in ${sql(statesHoldingCompute)}), 0)::float8 as "promisedMemory",
    coalesce(sum(held.disk_gib) filter (where held.state in ${sql(statesHoldingDisk)}), 0)::float8 as "promisedDisk",
    coalesce(extract(epoch from ${now}::timestamptz - last_heartbeat_at), 0)::float8 as "silentSeconds"
  from (select * from runners where state <> 'decommissioned' order by id limit ${mostRunners}) runners
    left join sandboxes held on held.runner_id = runners.id
  group by runners.id, runners.state, runners.cpu, runners.memory_gib, runners.disk_gib, runners.image_storage, last_heartbeat_at,
    is_silent, lost_at`

/** Registers the gauges. Returns a function that updates the gauges from the database. */
export const registerGauges = (registry: Registry): ((sql: Sql, now: Date) => Promise<void>) => {
  const gauge = (name: string, help: string, labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] })
  const sandboxes = gauge('alcove_sandboxes', 'Sandboxes by state; warm: started ahead and not yet claimed.', [
    'state',
    'warm',
  ])
  const oldest = gauge('alcove_sandbox_state_oldest_seconds', 'How long the oldest sandbox has been in a state.', [
    'state',
  ])
  const length = gauge('alcove_queue_length', 'Number of entries in a queue.', ['queue'])
  const age = gauge('alcove_queue_oldest_seconds', 'How long the oldest entry has been waiting in a queue.', ['queue'])
  const saved = gauge(
    'alcove_saved_bytes',
    'Size in the archive store of the saves of stopped disks. Saves of sandboxes that have started since do not count.',
    [],
  )
  const capacity = gauge('alcove_runner_capacity', 'CPUs and GiB that a runner has.', ['runner', 'resource'])
  const promised = gauge('alcove_runner_promised', 'CPUs and GiB of a runner that are promised to sandboxes.', [
    'runner',
    'resource',
  ])
  const ready = gauge('alcove_runner_ready', '1 if new sandboxes are placed on the runner.', ['runner'])
  const silent = gauge('alcove_runner_silent_seconds', 'Time since the last heartbeat of a runner.', ['runner'])
  const byState = gauge('alcove_runners', 'Runners by state.', ['state'])
  const imageBytes = gauge(
    'alcove_runner_image_bytes',
    'Disk space of images, kept layers and cached lines of Dockerfiles.',
    ['runner', 'kind'],
  )
  const givenBack = new Counter({
    name: 'alcove_runner_image_given_back_bytes_total',
    help: 'Disk space of images freed since the runner started, by reason: unused, age or pressure.',
    labelNames: ['runner', 'kind', 'reason'],
    registers: [registry],
  })

  const showStates = (rows: readonly StateCount[]) => {
    for (const state of Object.keys(stateRows).filter((word) => word !== 'destroyed')) {
      const found = rows.filter((row) => row.state === state)
      for (const isWarm of [false, true])
        sandboxes.set({ state, warm: String(isWarm) }, found.find((row) => row.isWarm === isWarm)?.count ?? 0)
      oldest.set({ state }, Math.max(0, ...found.map(({ oldestSeconds }) => oldestSeconds)))
    }
  }
  const showQueues = (rows: readonly Queue[]) => {
    for (const { queue, length: count, oldestSeconds } of rows) {
      length.set({ queue }, count)
      age.set({ queue }, Math.max(0, oldestSeconds))
    }
  }
  const showImages = (runner: string, { bytes, givenBack: given }: ImageStorage) => {
    for (const kind of imageKinds) {
      imageBytes.set({ runner, kind }, bytes[kind] ?? 0)
      for (const reason of givenBackReasons) givenBack.inc({ runner, kind, reason }, given[kind]?.[reason] ?? 0)
    }
  }
  const showRunnerStates = (rows: readonly RunnerRow[]) => {
    const states = rows.map(({ isLost, isSilent, state }) => {
      if (isLost) return 'lost'
      return isSilent ? 'unresponsive' : state
    })
    for (const state of runnerStates) byState.set({ state }, states.filter((each) => each === state).length)
  }
  const showRunners = (rows: readonly RunnerRow[]) => {
    // Removes the values of all runners first. Otherwise the gauges would show removed runners for ever.
    for (const each of [capacity, promised, ready, silent, imageBytes, givenBack]) each.reset()
    showRunnerStates(rows)
    for (const row of rows) {
      const { id: runner } = row
      const resources = [
        ['cpu', row.cpu, row.promisedCpu],
        ['memory', row.memory, row.promisedMemory],
        ['disk', row.disk, row.promisedDisk],
      ] as const
      for (const [resource, has, given] of resources) {
        capacity.set({ runner, resource }, has)
        promised.set({ runner, resource }, given)
      }
      ready.set({ runner }, row.state === 'ready' ? 1 : 0)
      silent.set({ runner }, Math.max(0, row.silentSeconds))
      if (row.imageStorage !== null) showImages(runner, row.imageStorage)
    }
  }
  return async (sql, now) => {
    showStates(await countStates(sql, now))
    showQueues(await measureQueues(sql, now))
    const [{ bytes }] = await measureSaved(sql)
    saved.set(bytes)
    showRunners(await measureRunners(sql, now))
  }
}
