// What the sandboxes of an organization hold, reckoned from their states by the table of their life, and the one rule
// about it: a transaction by which it grows ends within the quota, or not at all.
import {
  holdsOf,
  type Move,
  restingMoves,
  statesHoldingCompute,
  statesHoldingDisk,
} from '#src/control/sandboxes/lifecycle.ts'
import type { SandboxRow } from '#src/control/sandboxes/sandbox.ts'
import type { Size } from '#src/control/sandboxes/size.ts'
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { findRegionQuota, type Place, type RegionQuotaRow } from './store.ts'

export type Held = Size

type HeldRow = { region_id: string; sandbox_class: string; cpu: number; memory_gib: number; disk_gib: number }

const resting = restingMoves.map(([through, desired]) => `${through} ${desired}`)
const statesHolding = [...new Set([...statesHoldingCompute, ...statesHoldingDisk])]

/** Sandboxes of warm pools are nobody's until they are claimed. */
const sums = (sql: Sql, organizationId: string, where = sql``) => sql<HeldRow[]>`
  with held as (
    select id, region_id, sandbox_class, state, desired_state, cpu, memory_gib, disk_gib
    from sandboxes
    where organization_id = ${organizationId} and state in ${sql(statesHolding)} and warm_pool_id is null
    union all
    -- A runner may refuse to resize: until it has not, both sizes are held.
    select id, region_id, sandbox_class, state, desired_state, greatest((resize_from ->> 'cpu')::integer - cpu, 0),
      greatest((resize_from ->> 'memoryGiB')::integer - memory_gib, 0), 0
    from sandboxes
    where organization_id = ${organizationId} and state = 'resizing' and resize_from is not null
  ), counted as (
    select *, state in ${sql(statesHoldingCompute)} and state || ' ' || desired_state not in ${sql(resting)} as runs,
      state in ${sql(statesHoldingDisk)} as has_disk
    from held
  )
  select region_id, sandbox_class, coalesce(sum(cpu) filter (where runs), 0) as cpu,
    coalesce(sum(memory_gib) filter (where runs), 0) as memory_gib,
    coalesce(sum(disk_gib) filter (where has_disk), 0) as disk_gib
  from counted where true ${where} group by region_id, sandbox_class`

const readHeld = ({ cpu, memory_gib, disk_gib }: Omit<HeldRow, 'region_id' | 'sandbox_class'>): Held => ({
  cpu,
  memoryGiB: memory_gib,
  diskGiB: disk_gib,
})

export type HeldThere = Held & Omit<Place, 'organizationId'>

export const listHeld = async (sql: Sql, organizationId: string): Promise<HeldThere[]> =>
  (await sums(sql, organizationId)).map((row) => ({
    ...readHeld(row),
    regionId: row.region_id,
    sandboxClass: row.sandbox_class,
  }))

const kinds = [
  ['cpu', 'total_cpu_quota', 'CPU', ''],
  ['memoryGiB', 'total_memory_quota', 'memory', ' GiB'],
  ['diskGiB', 'total_disk_quota', 'disk', ' GiB'],
] as const satisfies readonly (readonly [keyof Held, keyof RegionQuotaRow, string, string])[]

/** One after the other until they have committed: what the next one counts is there by then. */
const holdPlace = (transaction: Transaction, { organizationId, regionId, sandboxClass }: Place) =>
  transaction`
    select pg_advisory_xact_lock(hashtextextended(${`quota ${organizationId} ${regionId} ${sandboxClass}`}, 0))`

const nothing: Held = { cpu: 0, memoryGiB: 0, diskGiB: 0 }

/** What it will hold where a move leads, or holds as it is. */
const heldIn = (
  sandbox: SandboxRow,
  { state, desired_state: desired }: Pick<SandboxRow, 'state' | 'desired_state'>,
) => {
  const { holdsCompute, holdsDisk } = holdsOf(state, desired)
  return {
    cpu: holdsCompute ? sandbox.cpu : 0,
    memoryGiB: holdsCompute ? sandbox.memory_gib : 0,
    diskGiB: holdsDisk ? sandbox.disk_gib : 0,
  }
}

/** What a move asks for: the sandbox before it, and as it was written. */
export type Growth = { from: SandboxRow | null; written: SandboxRow; to: Move['to'] }

const isMore = (after: Held, before: Held) => kinds.some(([kind]) => after[kind] > before[kind])

/** Whether a move may need more than there is: then it is written in a transaction, for `checkTotals` to end. */
export const mayGrow = (sandbox: SandboxRow, { to }: Pick<Move, 'to'>): boolean =>
  isMore(heldIn(sandbox, { state: to, desired_state: to }), heldIn(sandbox, sandbox))

/**
 * Refuses what would take an organization above its quota of a region. To be asked last in a transaction: whoever holds
 * the lock then waits for nothing but its own commit, so that nobody waits long and no two wait for each other.
 */
export const checkTotals = async (
  transaction: Transaction,
  { from, written, to }: Growth,
  /** Where it is known already; `null`: there is none. */
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
  // Two statements, so that the second sees what was committed while the first waited; sent together.
  const [, rows] = await Promise.all([
    holdPlace(transaction, place),
    sums(
      transaction,
      organizationId,
      transaction`and region_id = ${regionId} and sandbox_class = ${sandboxClass} and id <> ${written.id}`,
    ),
  ])
  const [row] = rows
  const others = row ? readHeld(row) : nothing
  const said = limited
    .filter(([kind, column]) => others[kind] + after[kind] > (quota[column] as number))
    .map(
      ([kind, column, name, unit]) =>
        `the ${name} quota of ${quota[column]}${unit} is exceeded: ${others[kind]}${unit} are used, and ${after[kind]}${unit} are asked for`,
    )
  if (said.length > 0) throw new Problem('forbidden', `In region ${regionId} ${said.join('; ')}.`)
}
