// How much sandboxes of each snapshot are wanted: what the size of the server's own warm pools follows.
import { randomUUID } from 'node:crypto'
import type { Piece, Sql } from '#src/control/storage/database.ts'
import type { RunningParts } from '../running.ts'

/** After this long a create counts half. */
const halfLifeSeconds = 300
/** Below it nobody seems to come any more: the pool is given up. */
const least = 0.05

/** Nothing is left by then, and numbers stay ones that the database can hold. */
const mostHalfLives = 100

/** What the demand of a pool has faded to. Where a clock was ahead, nothing has faded yet. */
export const fadedDemand = (sql: Sql, now: Date): Piece => {
  const halfLives = sql`extract(epoch from ${now}::timestamptz - warm_pools.demand_at)::float8 / ${halfLifeSeconds}`
  return sql`warm_pools.demand * power(0.5, least(greatest(${halfLives}, 0), ${mostHalfLives}))`
}

type Key = { snapshotId: string; regionId: string }

/** Counts creates since the last sweep; what a crash forgets is made up for by the next creates. */
export class WarmDemand {
  readonly #counts = new Map<string, Key & { count: number }>()

  count(key: Key): void {
    const name = `${key.snapshotId} ${key.regionId}`
    const known = this.#counts.get(name)
    if (known) known.count += 1
    else this.#counts.set(name, { ...key, count: 1 })
  }

  /** Writes what was counted, and lets what was written before fade. */
  async write({ database, clock, options }: RunningParts): Promise<void> {
    const now = clock.now()
    const { sql } = database
    const faded = fadedDemand(sql, now)
    const counts = [...this.#counts.values()]
    this.#counts.clear()
    for (const { snapshotId, regionId, count } of options.mostWarm > 0 ? counts : []) {
      await sql`
        insert into warm_pools
          (id, organization_id, snapshot_id, region_id, size, demand, demand_at, created_at, updated_at)
        select ${randomUUID()}, null, id, ${regionId}, 0, ${count}, ${now}, ${now}, ${now}
        from snapshots where id = ${snapshotId}
        on conflict (organization_id, snapshot_id, region_id)
        do update set demand = ${faded} + ${count}, demand_at = ${now}`
    }
    await sql`delete from warm_pools where organization_id is null and ${faded} < ${least}`
  }
}
