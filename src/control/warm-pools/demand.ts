// The demand for sandboxes of each snapshot: a count of creates that decays with time. The demand decides the size of the server's
// own warm pools.
import { randomUUID } from 'node:crypto'
import type { Piece, Sql } from '#src/control/storage/database.ts'
import type { RunningParts } from '../running.ts'

/** Half-life of the demand in seconds: a create that is this old counts half as much as a new create. */
const halfLifeSeconds = 300
/** A pool with less demand is deleted. The demand is a number of creates, in which older creates count less. */
const least = 0.05

/** Maximum number of half-lives by which a demand is reduced. A much larger number would underflow in the database. */
const mostHalfLives = 100

/** SQL expression for a pool's demand after decay. `demand_at` may be in the future if another process's clock is ahead. */
export const fadedDemand = (sql: Sql, now: Date): Piece => {
  const halfLives = sql`extract(epoch from ${now}::timestamptz - warm_pools.demand_at)::float8 / ${halfLifeSeconds}`
  return sql`warm_pools.demand * power(0.5, least(greatest(${halfLives}, 0), ${mostHalfLives}))`
}

type Key = { snapshotId: string; regionId: string }

/**
 * Counts creates since the last sweep. A crash loses these counts. That is harmless: the pools only grow a little
 * later.
 */
export class WarmDemand {
  readonly #counts = new Map<string, Key & { count: number }>()

  count(key: Key): void {
    const name = `${key.snapshotId} ${key.regionId}`
    const known = this.#counts.get(name)
    if (known) known.count += 1
    else this.#counts.set(name, { ...key, count: 1 })
  }

  /**
   * Updates the demand for the pools without an organization: old demand decays, and new creates count. Makes and deletes these
   * pools.
   */
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
