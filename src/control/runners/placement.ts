// Chooses the runner of a sandbox, and locks the runner's row, so that two creates cannot both use the last free resources. Used
// resources are summed up each time, so no stored counter can be wrong. A create first locks only a few runners, so that creates
// do not wait for each other.

import { hasNoLeftover } from '#src/control/sandboxes/record/leftovers.ts'
import { statesHoldingCompute, statesHoldingDisk } from '#src/control/sandboxes/record/lifecycle.ts'
import type { Piece, Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { VolumeDriver } from '#src/wire/runner-link.ts'

export type Overcommit = { cpu: number; memory: number; disk: number }

type Load = { cpu: number; memory_gib: number; disk_gib: number }

/**
 * Whether unclaimed warm sandboxes count as load. They count for a new warm sandbox (`warm`). They do not count for any other
 * new sandbox (undefined), because that sandbox may evict them.
 */
type CountsWarm = 'warm' | undefined

/** `volumes`: where the runner stores new volumes (on its disk or in a shared directory). null: the runner cannot mount volumes. */
type RunnerRow = { id: string; cpu: number; memory_gib: number; disk_gib: number; volumes: VolumeDriver | null }

/** A runner whose row is locked. `load`: what its sandboxes and volumes use. `image`: the image of the sandbox to place. */
export type HeldRunner = RunnerRow & { load: Load; image: string | null }

/** Which sandboxes count as load of a runner: all except `sandboxId`. Unclaimed warm sandboxes count as `countsWarm` says. */
type Counting = { sandboxId?: string | null | undefined; countsWarm?: CountsWarm }

const add = (one: Load, other: Load): Load => ({
  cpu: one.cpu + other.cpu,
  memory_gib: one.memory_gib + other.memory_gib,
  disk_gib: one.disk_gib + other.disk_gib,
})

const nothing: Load = { cpu: 0, memory_gib: 0, disk_gib: 0 }

/** Maximum number of runners that a create locks at first. It locks further runners only if none of these runners has room. */
const sampleSize = 4

/** `skips`: leave out runners that another transaction has locked. Otherwise wait for their locks. */
type Locking = { skips?: boolean }

const hold = async (
  transaction: Transaction,
  which: Piece,
  { sandboxId = null, countsWarm }: Counting,
  { image = null, skips = false }: Locking & { image?: string | Piece | null } = {},
): Promise<HeldRunner[]> => {
  // Both statements are sent at once, but PostgreSQL runs the second after the first has locked the runners. So the second
  // statement counts what earlier holders of the locks have placed. Locking in the order of ids prevents deadlocks.
  const [runners, loads] = await Promise.all([
    transaction<(RunnerRow & { image: string | null })[]>`
      select id, cpu, memory_gib, disk_gib, volumes, ${image}::text as image from runners where ${which}
      order by id ${skips ? transaction`for no key update skip locked` : transaction`for no key update`}`,
    transaction<(Load & { runner_id: string })[]>`
      with seen as materialized (select id from runners where ${which})
      select id as runner_id, 0::float8 as cpu, 0::float8 as memory_gib, 0::float8 as disk_gib from seen
      union all
      select runner_id,
        coalesce(sum(cpu) filter (where state = any(${statesHoldingCompute}::text[])), 0)::float8 as cpu,
        coalesce(sum(memory_gib) filter (where state = any(${statesHoldingCompute}::text[])), 0)::float8 as memory_gib,
        sum(disk_gib)::float8 as disk_gib
      from sandboxes
      where runner_id in (select id from seen) and state = any(${statesHoldingDisk}::text[])
        and id is distinct from ${sandboxId}
        ${countsWarm ? transaction`` : transaction`and warm_pool_id is null`}
      group by runner_id
      union all
      select runner_id, 0, 0, size_gib::float8 from volumes
      where runner_id in (select id from seen) and state <> 'deleted'`,
  ])
  const loadsOf = Map.groupBy(loads, ({ runner_id }) => runner_id)
  // Leaves out a runner without a row in `loads`, because its load is unknown.
  return runners.flatMap((runner) => {
    const ofRunner = loadsOf.get(runner.id)
    return ofRunner === undefined ? [] : [{ ...runner, load: ofRunner.reduce(add, nothing) }]
  })
}

/** Resources that a sandbox will use. `diskGiB` is absent if the sandbox's disk is on the runner already. */
type RequestedSize = { cpu: number; memoryGiB: number; diskGiB?: number }

/**
 * Returns how full the runner would be with the new sandbox: the largest fraction of CPU, memory and disk. Above 1, the sandbox
 * does not fit.
 */
const shareOf = ({ load, ...runner }: HeldRunner, { cpu, memoryGiB, diskGiB }: RequestedSize, overcommit: Overcommit) =>
  Math.max(
    (load.cpu + cpu) / (runner.cpu * overcommit.cpu),
    (load.memory_gib + memoryGiB) / (runner.memory_gib * overcommit.memory),
    diskGiB === undefined ? 0 : (load.disk_gib + diskGiB) / (runner.disk_gib * overcommit.disk),
  )

const hasRoom = (runner: HeldRunner, wanted: RequestedSize, overcommit: Overcommit) =>
  shareOf(runner, wanted, overcommit) <= 1

/** What the volumes of a sandbox require of its runner. */
export type VolumesNeed = {
  /** Name of one volume, for error messages. Preferred: a volume on a runner's disk, then a volume in the shared directory. */
  name: string
  /** The runner on whose disk the volumes are. null: no runner has them yet, or they are in the shared directory. */
  runnerId: string | null
  /** True if at least one volume is in the directory that runners of the region share. */
  isInDirectory: boolean
  /** Sum of the size limits, in GiB, of the volumes that do not exist yet. */
  newGiB: number
}

/** The resources, region and image that a new sandbox needs. */
type Place = Required<RequestedSize> & {
  regionId: string
  image: string
  volumes?: VolumesNeed | undefined
  sandboxId?: string
}

const canMount = ({ id, volumes }: HeldRunner, need: VolumesNeed | undefined): boolean => {
  if (need === undefined) return true
  if (volumes === null || (need.isInDirectory && volumes !== 'directory')) return false
  return need.runnerId === null || need.runnerId === id
}

/** Returns the requested size, with the new volumes if the runner stores volumes on its own disk. */
const withVolumes = ({ volumes: need, ...wanted }: Place, { volumes }: HeldRunner): RequestedSize => ({
  ...wanted,
  diskGiB: wanted.diskGiB + (volumes === 'disk' ? (need?.newGiB ?? 0) : 0),
})

const noRunnerMounts = ({ name, runnerId }: VolumesNeed): Problem =>
  new Problem(
    'no_room',
    runnerId === null
      ? `No runner that is ready and has this snapshot can mount the volume "${name}".`
      : `The volume "${name}" is on the runner "${runnerId}", which is not ready or does not have this snapshot.`,
  )

/** What a runner must have to get a sandbox. `sandboxId`: leaves out runners with a leftover of this sandbox. */
type Candidates = {
  regionId: string
  image: string | Piece
  volumes?: VolumesNeed | undefined
  sandboxId?: string | undefined
}

/** SQL condition for ready runners of the region with the image. If the volumes are on one runner's disk: only that runner. */
const canTake = (transaction: Transaction, { regionId, image, volumes, sandboxId }: Candidates) => {
  const whole = sandboxId
    ? transaction`and ${hasNoLeftover(transaction, sandboxId, transaction`runners.id`)}`
    : transaction``
  const only = volumes?.runnerId ? transaction`and id = ${volumes.runnerId}` : transaction``
  return transaction`region_id = ${regionId} and state = 'ready' and ${image} = any(images) ${only} ${whole}`
}

/**
 * Locks a random sample of the runners that can take a sandbox. The emptiest of a few runners is nearly as good as the emptiest
 * of all runners.
 */
export const holdRunners = (
  transaction: Transaction,
  candidates: Candidates,
  counting: Counting = {},
): Promise<HeldRunner[]> => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const which = transaction`id in (
    select id from runners where ${canTake(transaction, candidates)}
    order by hashtextextended(id, ${seed}) limit ${sampleSize})`
  return hold(transaction, which, counting, { image: candidates.image })
}

const bestOf = (runners: readonly HeldRunner[], wanted: Place, overcommit: Overcommit): string | undefined =>
  runners
    .filter((runner) => canMount(runner, wanted.volumes))
    .map((runner) => ({ id: runner.id, share: shareOf(runner, withVolumes(wanted, runner), overcommit) }))
    .filter(({ share }) => share <= 1)
    .sort((one, other) => one.share - other.share)[0]?.id

/**
 * Picks the emptiest runner of the sample `held`. If no runner of the sample has room, compares all runners that are not
 * locked. Throws if no runner has room.
 */
export const pickRunner = async (
  transaction: Transaction,
  held: readonly HeldRunner[],
  wanted: Place,
  overcommit: Overcommit,
  counting: Counting = {},
): Promise<string> => {
  const { volumes: need } = wanted
  let runners = held
  let best = bestOf(runners, wanted, overcommit)
  if (best === undefined && held.length === sampleSize) {
    runners = await hold(transaction, canTake(transaction, wanted), counting, { image: wanted.image, skips: true })
    best = bestOf(runners, wanted, overcommit)
  }
  if (best !== undefined) return best
  const able = runners.filter((runner) => canMount(runner, need))
  if (need && able.length === 0 && (need.runnerId !== null || runners.length > 0)) throw noRunnerMounts(need)
  if (runners.length === 0) throw await nobodyHas(transaction, wanted)
  if (need && need.runnerId !== null) {
    const where = `The runner "${need.runnerId}", which has the volume "${need.name}",`
    throw new Problem('no_room', `${where} has no room for a sandbox of this size now.`)
  }
  throw new Problem('no_room', 'No runner has room for a sandbox of this size now.')
}

/**
 * Returns whether a runner has room for a sandbox and is not locked by another transaction. `held`: the runners that
 * this transaction has locked.
 */
export const hasRoomOn = async (
  transaction: Transaction,
  held: readonly HeldRunner[],
  runnerId: string | null,
  wanted: RequestedSize,
  overcommit: Overcommit,
): Promise<boolean> => {
  const isHere = (runner: HeldRunner) => runner.id === runnerId
  if (held.some(isHere) || held.length < sampleSize)
    return held.some((each) => isHere(each) && hasRoom(each, wanted, overcommit))
  const found = await hold(transaction, transaction`id = ${runnerId} and state = 'ready'`, {}, { skips: true })
  return found.some((each) => hasRoom(each, wanted, overcommit))
}

/**
 * Finds a ready runner of the region that has the image and enough free resources, and locks that runner until the transaction
 * ends.
 */
export const reserveRunner = async (
  transaction: Transaction,
  wanted: Place,
  overcommit: Overcommit,
  countsWarm?: CountsWarm,
): Promise<string> => {
  const counting = { sandboxId: wanted.sandboxId, countsWarm }
  const runners = await holdRunners(transaction, wanted, counting)
  return await pickRunner(transaction, runners, wanted, overcommit, counting)
}

/**
 * Returns whether a sandbox should wait for its image: no ready runner has the image, but a ready runner of the region may
 * still get it.
 */
export const isImageComing = async (
  transaction: Transaction,
  held: readonly HeldRunner[],
  { regionId, image }: { regionId: string; image: string },
): Promise<boolean> => {
  if (held.length > 0) return false
  const [row] = await transaction`
    select 1 from images join runners on runners.region_id = images.region_id
    where images.name = ${image} and images.region_id = ${regionId} and images.runner_id is null and images.wanted
      and runners.state = 'ready' and not runners.id = any(images.failed_on) limit 1`
  return row !== undefined
}

const said: Record<string, string> = { disabled: 'drained', unresponsive: 'silent', initializing: 'starting' }

/**
 * Returns the problem if no ready runner has the image. 400: the image is of another region. 503: a retry may succeed,
 * for example when a runner reconnects.
 */
const nobodyHas = async (transaction: Transaction, { regionId, image }: { regionId: string; image: string }) => {
  const [elsewhere] = await transaction<{ region: string }[]>`
    select region_id as region from images where name = ${image} and region_id <> ${regionId}`
  if (elsewhere) {
    const where = `"${elsewhere.region}", and not in "${regionId}"`
    return new Problem('bad_request', `This snapshot is in the region ${where}.`)
  }
  const holders = await transaction<{ id: string; state: string }[]>`
    select id, state from runners where region_id = ${regionId} and ${image} = any(images) and state <> 'decommissioned'
    order by id limit 3`
  const why = holders.map(({ id, state }) => ` Runner "${id}" has it and is ${said[state] ?? state}.`).join('')
  return new Problem('no_room', `No runner with this snapshot is ready now.${why}`)
}

/**
 * Throws if a sandbox's runner has no room for the size `wanted`. The runner has the sandbox's disk, or the disk of a fork's
 * parent.
 */
export const checkRoom = async (
  transaction: Transaction,
  runnerId: string | null,
  /** The sandbox that gets the size `wanted`. Its present size does not count. `null`: a fork, which uses nothing yet. */
  sandboxId: string | null,
  wanted: RequestedSize,
  overcommit: Overcommit,
): Promise<void> => {
  if (runnerId === null) throw new Problem('conflict', 'This sandbox is on no runner.')
  const [runner] = await hold(transaction, transaction`id = ${runnerId}`, { sandboxId })
  if (!runner) throw new Problem('conflict', 'The runner of this sandbox is gone.')
  if (hasRoom(runner, wanted, overcommit)) return
  throw new Problem('no_room', 'The runner of this sandbox has no room for that now.')
}
