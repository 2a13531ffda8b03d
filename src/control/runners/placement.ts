// Where a sandbox goes, and whether there is room. The runner's row is locked while it is decided, so that two creates
// cannot both take the last place; what is taken is the sum over its sandboxes, which cannot drift.
import { statesHoldingCompute, statesHoldingDisk } from '#src/control/sandboxes/lifecycle.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'

export type Overcommit = { cpu: number; memory: number; disk: number }

type Load = { cpu: number; memory_gib: number; disk_gib: number }

/** Warm sandboxes that nobody has claimed give way to everybody else, and count only for the next of their kind. */
type CountsWarm = 'warm' | undefined

const loadOf = async (
  transaction: Transaction,
  runnerId: string,
  exceptSandboxId: string | null,
  countsWarm: CountsWarm,
): Promise<Load> => {
  const [load] = await transaction<[Load]>`
    select
      coalesce(sum(cpu) filter (where state in ${transaction(statesHoldingCompute)}), 0)::float8 as cpu,
      coalesce(sum(memory_gib) filter (where state in ${transaction(statesHoldingCompute)}), 0)::float8 as memory_gib,
      coalesce(sum(disk_gib), 0)::float8 as disk_gib
    from sandboxes
    where runner_id = ${runnerId} and state in ${transaction(statesHoldingDisk)}
      and id is distinct from ${exceptSandboxId}
      ${countsWarm ? transaction`` : transaction`and warm_pool_id is null`}`
  return load
}

type RunnerRow = { id: string; cpu: number; memory_gib: number; disk_gib: number }

/** What a sandbox will hold; without `diskGiB`: its disk is there already. */
type Wanted = { cpu: number; memoryGiB: number; diskGiB?: number }

/** How much of what may be promised would be. */
const sharesOf = (
  runner: RunnerRow,
  load: Load,
  { cpu, memoryGiB, diskGiB }: Wanted,
  overcommit: Overcommit,
): number[] => [
  (load.cpu + cpu) / (runner.cpu * overcommit.cpu),
  (load.memory_gib + memoryGiB) / (runner.memory_gib * overcommit.memory),
  ...(diskGiB === undefined ? [] : [(load.disk_gib + diskGiB) / (runner.disk_gib * overcommit.disk)]),
]

/** Finds the ready runner of a region that has the image and the most room, and holds it until the transaction ends. */
export const reserveRunner = async (
  transaction: Transaction,
  /** `sandboxId`: of one that is somewhere already, and is not counted there. */
  wanted: {
    regionId: string
    image: string
    cpu: number
    memoryGiB: number
    diskGiB: number
    sandboxId?: string
  },
  overcommit: Overcommit,
  countsWarm?: CountsWarm,
): Promise<string> => {
  // In the order of their ids, so that two placements never wait for each other in a circle.
  const runners = await transaction<RunnerRow[]>`
    select id, cpu, memory_gib, disk_gib from runners
    where region_id = ${wanted.regionId} and state = 'ready' and ${wanted.image} = any(images)
    order by id for no key update`
  let best: { id: string; share: number } | undefined
  for (const runner of runners) {
    const load = await loadOf(transaction, runner.id, wanted.sandboxId ?? null, countsWarm)
    const share = Math.max(...sharesOf(runner, load, wanted, overcommit))
    if (share <= 1 && (best === undefined || share < best.share)) best = { id: runner.id, share }
  }
  if (best) return best.id
  if (runners.length === 0) throw await nobodyHas(transaction, wanted)
  throw new Problem('unavailable', 'No runner has room for a sandbox of this size now.')
}

const said: Record<string, string> = { disabled: 'drained', unresponsive: 'silent', initializing: 'starting' }

/** A snapshot of a sandbox stays on the runner where it was made, and may have to wait for it. */
const nobodyHas = async (transaction: Transaction, { regionId, image }: { regionId: string; image: string }) => {
  const holders = await transaction<{ id: string; state: string }[]>`
    select id, state from runners where region_id = ${regionId} and ${image} = any(images) and state <> 'decommissioned'
    order by id limit 3`
  const why = holders.map(({ id, state }) => ` Runner "${id}" has it and is ${said[state] ?? state}.`).join('')
  return new Problem('unavailable', `No runner with this snapshot is ready now.${why}`)
}

/** Where a sandbox stays where its files are, so that it is there that room is needed for what it will hold. */
export const checkRoom = async (
  transaction: Transaction,
  runnerId: string | null,
  /** Not counted, because it will hold `wanted` instead; `null`: nothing of it is there yet. */
  sandboxId: string | null,
  wanted: Wanted,
  overcommit: Overcommit,
): Promise<void> => {
  if (runnerId === null) throw new Problem('conflict', 'This sandbox is on no runner.')
  const [runner] = await transaction<RunnerRow[]>`
    select id, cpu, memory_gib, disk_gib from runners where id = ${runnerId} for no key update`
  if (!runner) throw new Problem('conflict', 'The runner of this sandbox is gone.')
  const load = await loadOf(transaction, runnerId, sandboxId, undefined)
  if (Math.max(...sharesOf(runner, load, wanted, overcommit)) <= 1) return
  throw new Problem('unavailable', 'The runner of this sandbox has no room for that now.')
}
