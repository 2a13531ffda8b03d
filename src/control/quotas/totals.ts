// Computes how much of its quota an organization uses. A transaction fails if it increases this usage above the quota.

import type { Size } from '#src/control/sandboxes/record/columns.ts'
import {
  holdsOf,
  type Move,
  statesHoldingCompute,
  statesHoldingDisk,
  statesOfResize,
} from '#src/control/sandboxes/record/lifecycle.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import type { Piece, Sql, Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import { findRegionQuota, type Place, type RegionQuotaRow } from './store.ts'

export type Held = Size

type HeldRow = Pick<
  SandboxRow,
  'region_id' | 'sandbox_class' | 'state' | 'desired_state' | 'cpu' | 'memory_gib' | 'disk_gib'
>

const statesHolding = [...new Set([...statesHoldingCompute, ...statesHoldingDisk])]

/** Returns sums of sandbox sizes by region, class and state. Warm sandboxes that nobody has claimed are left out. */
const sums = (sql: Sql, organizationId: string, states: readonly SandboxState[], more: Piece = sql``) => sql<HeldRow[]>`
  select region_id, sandbox_class, state, desired_state,
    sum(cpu) as cpu, sum(memory_gib) as memory_gib, sum(disk_gib) as disk_gib
  from sandboxes
  where organization_id = ${organizationId} and state in ${sql(states as SandboxState[])}
    and state <> 'destroyed' and warm_pool_id is null ${more} -- the condition of its index, sandboxes_held
  group by region_id, sandbox_class, state, desired_state
  union all
  -- A runner may refuse to resize: until it has not, both sizes are held.
  select region_id, sandbox_class, state, desired_state, greatest((resize_from ->> 'cpu')::integer - cpu, 0),
    greatest((resize_from ->> 'memoryGiB')::integer - memory_gib, 0), 0
  from sandboxes
  where organization_id = ${organizationId} and state in ${sql(statesOfResize)}
    and state <> 'destroyed' and warm_pool_id is null and resize_from is not null ${more}`

export const nothing: Held = { cpu: 0, memoryGiB: 0, diskGiB: 0 }

const add = (one: Held, other: Held): Held => ({
  cpu: one.cpu + other.cpu,
  memoryGiB: one.memoryGiB + other.memoryGiB,
  diskGiB: one.diskGiB + other.diskGiB,
})

/**
 * Returns how much quota a sandbox uses in this state. A stopped sandbox uses only disk quota, even during a resize or a
 * snapshot.
 */
const heldIn = (
  { cpu, memory_gib, disk_gib }: Pick<HeldRow, 'cpu' | 'memory_gib' | 'disk_gib'>,
  { state, desired_state: desired }: Pick<HeldRow, 'state' | 'desired_state'>,
): Held => {
  const { holdsCompute, holdsDisk } = holdsOf(state, desired)
  return {
    cpu: holdsCompute ? cpu : 0,
    memoryGiB: holdsCompute ? memory_gib : 0,
    diskGiB: holdsDisk ? disk_gib : 0,
  }
}

type HeldThere = Held & Omit<Place, 'organizationId'>

export const listHeld = async (sql: Sql, organizationId: string): Promise<HeldThere[]> => {
  const places = new Map<string, HeldThere>()
  for (const row of await sums(sql, organizationId, statesHolding)) {
    const { region_id: regionId, sandbox_class: sandboxClass } = row
    const key = JSON.stringify([regionId, sandboxClass])
    const before = places.get(key) ?? nothing
    places.set(key, { regionId, sandboxClass, ...add(before, heldIn(row, row)) })
  }
  return [...places.values()]
}

const kinds = [
  ['cpu', 'total_cpu_quota', 'CPU', ''],
  ['memoryGiB', 'total_memory_quota', 'memory', ' GiB'],
  ['diskGiB', 'total_disk_quota', 'disk', ' GiB'],
] as const satisfies readonly (readonly [keyof Held, keyof RegionQuotaRow, string, string])[]

/** Locks an organization's quota for a region and a class until the transaction ends. */
const holdPlace = (transaction: Transaction, { organizationId, regionId, sandboxClass }: Place) =>
  transaction`
    select pg_advisory_xact_lock(hashtextextended(${`quota ${organizationId} ${regionId} ${sandboxClass}`}, 0))`

/** A move of a sandbox. `from`: the row before; null for a create. `to`: the state in which the move ends. */
type Growth = { from: SandboxRow | null; written: SandboxRow; to: Move['to'] }

const isMore = (after: Held, before: Held) => kinds.some(([kind]) => after[kind] > before[kind])

/** Returns whether a move may need more quota. If so, the transaction of the move must end with `checkTotals`. */
export const mayGrow = (sandbox: SandboxRow, { to }: Pick<Move, 'to'>): boolean =>
  isMore(heldIn(sandbox, { state: to, desired_state: to }), heldIn(sandbox, sandbox))

/**
 * Throws if the organization would exceed its quota in a region. Locks that quota. Call this last in the transaction:
 * then other transactions wait only briefly, and no deadlock is possible.
 */
export const checkTotals = async (
  transaction: Transaction,
  { from, written, to }: Growth,
  /** The organization's row in `region_quotas`, if the caller has read it. `null`: there is no row. */
  known?: RegionQuotaRow | null,
): Promise<void> => {
  const before = from === null ? nothing : heldIn(from, from)
  const after = heldIn(written, { state: to, desired_state: to })
  if (!isMore(after, before)) return
  const { organization_id: organizationId, region_id: regionId, sandbox_class: sandboxClass } = written
  const place = { organizationId, regionId, sandboxClass }
  const quota = known === undefined ? await findRegionQuota(transaction, place) : known
  const limited = kinds.filter(([kind, column]) => after[kind] > before[kind] && (quota?.[column] ?? null) !== null)
  if (!quota || limited.length === 0) return
  // Sandboxes that use only disk quota are counted only if this move needs more disk and the quota limits the disk.
  const states = limited.some(([kind]) => kind === 'diskGiB') ? statesHolding : statesHoldingCompute
  const here = transaction`and region_id = ${regionId} and sandbox_class = ${sandboxClass} and id <> ${written.id}`
  // Both statements are sent at once, but PostgreSQL runs the second after the first has got the lock. So the second statement
  // sees the changes of earlier holders of the lock.
  const [, rows] = await Promise.all([holdPlace(transaction, place), sums(transaction, organizationId, states, here)])
  const others = rows.map((row) => heldIn(row, row)).reduce(add, nothing)
  const said = limited
    .filter(([kind, column]) => others[kind] + after[kind] > (quota[column] as number))
    .map(
      ([kind, column, name, unit]) =>
        `total ${name} limit exceeded: the ${name} quota of ${quota[column]}${unit} is exceeded: ${others[kind]}${unit} are used, and ${after[kind]}${unit} are asked for`,
    )
  if (said.length > 0) throw new Problem('quota_exceeded', `In region ${regionId} ${said.join('; ')}.`)
}
