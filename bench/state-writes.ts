// Measures what one state change costs in PostgreSQL, with 100,000 sandboxes: time on one connection, processor time, and bytes and
// records of the write-ahead log. Commits do not wait for the disk, because that wait would take longer than everything else.
// `node bench/state-writes.ts [writes] [wait]`, as root.
import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bootstrap } from '#src/control/bootstrap.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { writeState } from '#src/control/sandboxes/record/store.ts'
import { openDatabase, type Sql } from '#src/control/storage/database.ts'
import { migrate } from '#src/control/storage/migrate.ts'
import { systemClock } from '#src/kit/clock.ts'
import { silentLog } from '#src/kit/log.ts'
import { startPostgres } from '#src/postgres/embedded.ts'
import { keys, organizations, settle } from '#test/control/people.ts'
import { populate } from '#test/control/population.ts'
import { testEncryption, testSettings } from '#test/control/test-settings.ts'
import { keep, median, percentile, type Samples, timed, whenAsked } from './samples.ts'

const count = Math.ceil(Number(process.argv[2] ?? 4000) / 4)

/** The changes of state that a pause and a resume make. */
const cycle = [
  { to: 'pausing', set: { desired_state: 'paused' } },
  { to: 'paused', set: { error_reason: null } },
  { to: 'resuming', set: { desired_state: 'started' } },
  { to: 'started', set: { error_reason: null } },
] as const

const cycleAll = async (sql: Sql, rows: SandboxRow[]): Promise<Samples> => {
  const taken: Samples = []
  for (const change of cycle) {
    for (const [index, row] of rows.entries()) {
      const write = async () => {
        const by = { kind: 'user', id: 'bench' } as const
        const written = await writeState(sql, row, { ...change, by, isToldAgain: true }, new Date())
        if (!written) throw new Error(`${row.id} was written by somebody else`)
        rows[index] = written
      }
      taken.push(await timed(write))
    }
  }
  return taken
}

const directory = await mkdtemp(join(tmpdir(), 'alcove-bench-'))
await chmod(directory, 0o711)
const log = silentLog()
const uid = 64_205
const places = { directory: join(directory, 'data'), socketDirectory: join(directory, 'socket') }
const postgres = await startPostgres({ ...places, uid, gid: uid, log })
const database = openDatabase(postgres.url, { max: 1 })
const other = openDatabase(postgres.url, { max: 1 })
try {
  await migrate(database)
  const parts = { database: other, clock: systemClock, log, settings: testSettings, encryption: testEncryption }
  await bootstrap(parts, keys.admin)
  await settle(other.sql)
  await populate(other, [{ organizationId: organizations.ours, count: 100_000 }], new Date())
  const { sql } = database.keyed
  await other.sql`alter table sandboxes set (autovacuum_enabled = false)`
  const rows = await other.sql<SandboxRow[]>`
    select * from sandboxes where state = 'started' and warm_pool_id is null order by hashtext(id) limit ${count + 25}`
  await cycleAll(sql, rows.slice(0, 25))
  const [{ pid }] = await sql<[{ pid: number }]>`select pg_backend_pid() as pid`
  const processorMs = () => Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6
  const logged = async () => {
    for (const each of [sql, other.sql]) await each`select pg_stat_force_next_flush()`
    const [found] = await other.sql<[{ bytes: number; records: number; pages: number }]>`
      select (pg_current_wal_insert_lsn() - '0/0')::float8 as bytes, wal_records::float8 as records,
        wal_fpi::float8 as pages from pg_stat_wal`
    return found
  }

  await whenAsked()
  // Each run begins with a checkpoint: the first write to a page after a checkpoint adds the whole page to the log.
  await other.sql`checkpoint`
  const before = { ...(await logged()), processor: processorMs() }
  const samples = await cycleAll(sql, rows.slice(25))
  const after = { ...(await logged()), processor: processorMs() }
  const each = (before: number, after: number) => (after - before) / samples.length
  const perWrite = {
    processorMicroseconds: each(before.processor, after.processor) * 1000,
    walBytes: each(before.bytes, after.bytes),
    walRecords: each(before.records, after.records),
    wholePages: each(before.pages, after.pages),
  }
  const [indexes] = await other.sql<[{ count: number }]>`
    select count(*)::int as count from pg_index where indrelid = 'sandboxes'::regclass`
  console.log(`indexes of sandboxes        ${indexes.count}`)
  console.log(
    `a write, ms                 p50 ${median(samples).toFixed(3)}  p99 ${percentile(samples, 0.99).toFixed(3)}`,
  )
  for (const [name, value] of Object.entries(perWrite)) console.log(`${name.padEnd(28)}${value.toFixed(1)}`)
  console.log(keep('state-writes', { writes: samples.length, indexes: indexes.count, perWrite, samples }))
} finally {
  await Promise.all([database.close(), other.close()])
  await postgres.stop()
  await rm(directory, { recursive: true, force: true })
}
