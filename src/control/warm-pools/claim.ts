// Gives a running warm sandbox to a caller, in one transaction.

import type { RequestedColumns } from '#src/control/sandboxes/record/columns.ts'
import { moveFrom } from '#src/control/sandboxes/record/lifecycle.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { type By, nameTaken, writeState } from '#src/control/sandboxes/service.ts'
import { isDuplicate, type Piece, type Transaction } from '#src/control/storage/database.ts'
import type { RunningParts } from '../running.ts'

type WantedWarm = { organizationId: string; regionId: string; snapshotId: string | Piece }

/** Locks a ready warm sandbox for this transaction, preferably one of the caller's own pools. Skips sandboxes that are locked. */
export const holdWarm = async (
  transaction: Transaction,
  { organizationId, regionId, snapshotId }: WantedWarm,
): Promise<SandboxRow | undefined> => {
  const [row] = await transaction<SandboxRow[]>`
    select sandboxes.* from sandboxes
      join warm_pools on warm_pools.id = warm_pool_id
    where warm_pools.snapshot_id = ${snapshotId} and warm_pools.region_id = ${regionId}
      and (warm_pools.organization_id = ${organizationId} or warm_pools.organization_id is null)
      and sandboxes.state = 'started' and desired_state = 'started'
      -- Not a join: with many runners, PostgreSQL would begin with them and read all of their sandboxes.
      and (select runners.state from runners where runners.id = runner_id) = 'ready'
    order by warm_pools.organization_id nulls last, sandboxes.created_at, sandboxes.id
    limit 1 for no key update of sandboxes skip locked`
  return row
}

const isOfSize = (row: SandboxRow, size: Pick<RequestedColumns, 'cpu' | 'memory_gib' | 'disk_gib'>) =>
  row.cpu === size.cpu && row.memory_gib === size.memory_gib && row.disk_gib === size.disk_gib

/**
 * Writes the new owner and settings of the sandbox, which keeps running. Calls into the sandbox wait until the runner has applied
 * the settings. If the size changes, the state is `creating` until then, because the runner may refuse the new size.
 */
export const claimWarm = async (
  transaction: Transaction,
  { clock }: RunningParts,
  warm: SandboxRow,
  wanted: RequestedColumns,
  /** Name of the sandbox. Default: its id. */
  name: string | undefined,
  by: By,
): Promise<SandboxRow> => {
  const move = moveFrom(isOfSize(warm, wanted) ? 'claim' : 'claim-resizing', warm.state)
  const set = {
    ...wanted,
    name: name ?? warm.id,
    warm_pool_id: null,
    desired_state: move.to,
    generation: warm.generation + 1,
    least_generation: warm.generation + 1,
    last_activity_at: clock.now(),
  }
  try {
    const change = { to: move.through, by, reason: 'Claimed from a warm pool.', set }
    return (await writeState(transaction, warm, change, clock.now()))!
  } catch (error) {
    if (!isDuplicate(error)) throw error
    throw nameTaken(name, error)
  }
}
