// Inserts many sandboxes into a database by SQL, so that tests list a table as large as a large server's.
import type { Database, Sql } from '#src/control/storage/database.ts'

export type Share = { organizationId: string; count: number }

/**
 * Inserts sandboxes like those of a server that has run for three months. Started sandboxes have the latest times of use, so a
 * query for stopped sandboxes must skip many rows. Some states and labels are rare, and each sandbox has a label of its own.
 */
export const populate = async (database: Database, shares: readonly Share[], now: Date): Promise<void> => {
  await database.transaction(async (sql) => {
    await sql`set local statement_timeout = 0`
    for (const share of shares) await insertMany(sql, share, now)
  })
  // Repeat the vacuum, because a vacuum skips new rows while an older transaction is open anywhere on the PostgreSQL server.
  for (let seen = 0; seen < 0.99; ) {
    await database.sql`vacuum analyze sandboxes`
    const [pages] = await database.sql<[{ seen: number }]>`
      select relallvisible::float8 / relpages as seen from pg_class where oid = 'sandboxes'::regclass`
    seen = pages.seen
  }
}

export const insertMany = async (sql: Sql, { organizationId, count }: Share, now: Date): Promise<void> => {
  await sql`
      insert into sandboxes (
        id, organization_id, name, region_id, sandbox_class, snapshot_id, snapshot, image, os_user, env, labels, public,
        network_block_all, cpu, memory_gib, disk_gib, state, desired_state, version, generation, error_reason, recoverable,
        runner_id, warm_pool_id, auto_stop_interval, auto_pause_interval, auto_archive_interval, auto_delete_interval,
        auto_destroy_at, last_activity_at, state_changed_at, stopped_at, preview_token, signing_key, created_by, created_at,
        updated_at)
      select
        id, ${organizationId}, (array['build','agent','notebook','ci','review'])[1 + n % 5] || '-' || substr(id, 1, 12),
        'local', case when n % 50 = 0 then 'linux-vm' else 'container' end, 'snapshot', snapshot, 'default', 'daytona',
        '{"HOME_PAGE":"https://example.com","MODE":"production","TOKEN":"0123456789abcdef0123456789abcdef"}',
        jsonb_build_object('team', 'team-' || n % 20, 'env', (array['prod','dev'])[1 + n % 2], 'user', 'user-' || n)
          || case when n % 4000 = 7 then '{"tier":"gold"}' else '{}' end::jsonb,
        n % 10 = 0, false, (array[1,1,1,2,4,8])[1 + h % 6], (array[1,1,2,4,8,16])[1 + h / 6 % 6],
        (array[3,3,10,30])[1 + h / 36 % 4], state, case when state = 'error' then 'started' else state end, 3, 3,
        case when state = 'error' then 'The first process ended.' end, case when state = 'error' then n % 200 = 5 end,
        null, case when n % 100 = 1 then 'pool-1' end, 15, 0, 10080, -1,
        case when n % 20 = 0 then created_at + interval '120 days' end, active_at, active_at,
        case when state = 'stopped' then active_at end, id, id, 'user-owner', created_at, active_at
      from (
        select *, ${now}::timestamptz - case when state in ('started', 'error') then interval '1 second' * (h % 86400)
            else interval '1 day' + interval '1 second' * (h % 6000000) end as active_at,
          ${now}::timestamptz - interval '100 days' + interval '1 second' * (h % 3000000) as created_at
        from (
          select n, gen_random_uuid()::text as id, abs(hashint4(n)::bigint) as h,
            case when n % 2000 = 3 then 'archived' when n % 100 = 5 then 'error' when n % 100 = 6 then 'destroyed'
              when n % 5 < 2 then 'stopped' else 'started' end as state,
            case when n % 1000 = 11 then 'gpu-tools' when n % 4 = 0 then 'python' else 'default' end as snapshot
          from generate_series(1, ${count}::int) n
        ) dice
      ) made`
}
