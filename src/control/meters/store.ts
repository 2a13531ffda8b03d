// The SQL of usage samples.

import type { Sql } from '#src/control/storage/database.ts'
import { isUnsynced } from '#src/control/storage/unsynced.ts'
import type { MeterReading, MeterSample } from '#src/wire/meter-reading.ts'

/** Minimum number of seconds between two stored samples of a sandbox. A sample that comes sooner is dropped. */
const leastSeconds = 5

const ago = (now: Date, seconds: number) => new Date(now.getTime() - seconds * 1000)

/** Stores samples. Ignores samples of sandboxes that are not on the runner that sent them. */
export const insertSamples = async (
  sql: Sql,
  runnerId: string,
  samples: readonly MeterSample[],
  now: Date,
): Promise<void> => {
  await sql`
    insert into sandbox_meters
      (sandbox_id, at, cpu_count, cpu_used_pct, mem_total, mem_used, mem_cache, disk_total, disk_used)
    select sandboxes.id::uuid, ${now}, "cpuCount", "cpuUsedPct", "memTotal", "memUsed", "memCache", "diskTotal", "diskUsed"
    from jsonb_to_recordset(${sql.json(samples as MeterSample[])}) as said
      ("sandboxId" text, "cpuCount" real, "cpuUsedPct" real, "memTotal" real, "memUsed" real, "memCache" real,
       "diskTotal" real, "diskUsed" real)
    join sandboxes on sandboxes.id = "sandboxId" and runner_id = ${runnerId} and state <> 'destroyed'
    where ${isUnsynced(sql)} and not exists (
      select 1 from sandbox_meters known where known.sandbox_id = sandboxes.id::uuid and at > ${ago(now, leastSeconds)})
    on conflict do nothing`
}

export type MeterRow = Omit<MeterReading, 'diskUsed'> & { at: Date; diskUsed: number | null }

/** Lists means of samples: one for each period of `seconds` seconds, with the time of the last sample in the period. */
export const listMeans = (
  sql: Sql,
  sandboxId: string,
  { from, to, seconds }: { from: Date; to: Date; seconds: number },
): Promise<MeterRow[]> => sql<MeterRow[]>`
  select max(at) as at, avg(cpu_count) as "cpuCount", avg(cpu_used_pct) as "cpuUsedPct", avg(mem_total) as "memTotal",
    avg(mem_used) as "memUsed", avg(mem_cache) as "memCache", avg(disk_total) as "diskTotal", avg(disk_used) as "diskUsed"
  from sandbox_meters
  where sandbox_id = ${sandboxId}::uuid and at between ${from} and ${to}
  group by floor(extract(epoch from at - ${from}::timestamptz) / ${seconds}::float8) order by 1`

/** Deletes at most `most` samples from before the time `before`. Returns how many were deleted. */
export const deleteSamples = async (sql: Sql, before: Date, most: number): Promise<number> => {
  const { count } = await sql`
    delete from sandbox_meters where (sandbox_id, at) in (
      select sandbox_id, at from sandbox_meters where at < ${before} order by at limit ${most})`
  return count
}
