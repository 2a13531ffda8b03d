// Measures one control and its PostgreSQL with many simulated hosts: the time of creates and lists, processor time, and what
// PostgreSQL writes. Then measures how long all hosts take to connect again after control is killed. The hosts have no sandboxes:
// they only report each assignment as done.
//   node bench/fleet.ts [--hosts 1000] [--sandboxes 100000] [--rate 200] [--seconds 60] [wait]        as root
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Pool } from 'undici'
import { hashKey } from '#src/control/auth/secret.ts'
import { bootstrap } from '#src/control/bootstrap.ts'
import { statesHoldingDisk } from '#src/control/sandboxes/record/lifecycle.ts'
import { openDatabase, type Sql } from '#src/control/storage/database.ts'
import { migrate } from '#src/control/storage/migrate.ts'
import { systemClock } from '#src/kit/clock.ts'
import { silentLog } from '#src/kit/log.ts'
import { startPostgres } from '#src/postgres/embedded.ts'
import { startControlProcess } from '#test/control/control-process.ts'
import { keys, organizations, settle } from '#test/control/people.ts'
import { insertMany } from '#test/control/population.ts'
import { testSettings } from '#test/control/test-settings.ts'
import type { FleetCounts, FleetStart } from './fleet/hosts.ts'
import { keep, percentile, type Samples, whenAsked } from './samples.ts'

const { values: given } = parseArgs({
  allowPositionals: true,
  options: {
    hosts: { type: 'string', default: '1000' },
    sandboxes: { type: 'string', default: '100000' },
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '60' },
  },
})
const hosts = Number(given.hosts)
const sandboxes = Number(given.sandboxes)
const rate = Number(given.rate)
const seconds = Number(given.seconds)
/** How long a simulated host takes for an assignment, in ms. A real host takes about this time to start a sandbox. */
const doneAfterMs = 150
/** Each simulated host reports its sandboxes' use once in this many seconds. A real runner has the same default. */
const meterSeconds = 60
/** Maximum number of creates that wait for an answer. If so many wait, the next create is skipped and counted. */
const mostOpen = 500
const listEveryMs = 250
/** The kernel's clock ticks per second. /proc contains processor time in these ticks. */
const ticks = 100

const log = silentLog()
const directory = await mkdtemp(join(tmpdir(), 'alcove-fleet-'))
await chmod(directory, 0o711)
const uid = 64_206
const postgres = await startPostgres({
  directory: join(directory, 'data'),
  socketDirectory: join(directory, 'socket'),
  ...{ uid, gid: uid, log },
})
const database = openDatabase(postgres.url, { max: 4 })
const stops: (() => Promise<unknown> | unknown)[] = []

const tokenOf = (host: number) => `alr_${String(host).padStart(64, '0')}`

/** Fills the database with hosts, and with sandboxes that are spread evenly over the hosts. */
const fill = async (sql: Sql): Promise<void> => {
  const now = new Date()
  const all = Array.from({ length: hosts }, (_, at) => ({
    ...{ id: `host-${at}`, region_id: 'local', key_hash: hashKey(tokenOf(at)), created_at: now, updated_at: now },
  }))
  await sql`insert into runners ${sql(all)}`
  for (const organizationId of Object.values(organizations)) {
    await insertMany(sql, { organizationId, count: Math.ceil(sandboxes / 2) }, now)
  }
  await sql`
    update sandboxes set runner_id = 'host-' || (abs(hashtext(id)::bigint) % ${hosts}::int),
      desired_state = case when state = 'error' then 'stopped' else desired_state end,
      -- No timer is due while this measures.
      last_activity_at = ${now}, stopped_at = ${now}, auto_stop_interval = 0, auto_destroy_at = null
    where state = any(${statesHoldingDisk}::text[])`
}

/** Returns the processor time that a process and its children have used, in seconds. */
const processorOf = (pid: number): number => {
  const fieldsOf = (id: string | number) => {
    try {
      const text = readFileSync(`/proc/${id}/stat`, 'utf8')
      return text.slice(text.lastIndexOf(')') + 2).split(' ')
    } catch {
      return []
    }
  }
  const own = fieldsOf(pid)
  // The time of PostgreSQL's ended children is in the fields `cutime` and `cstime` of their parent.
  const spent = (fields: string[], from: number, to: number) =>
    fields.slice(from, to).reduce((sum, each) => sum + Number(each), 0)
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && fieldsOf(name)[1] === String(pid))
    .reduce((sum, name) => sum + spent(fieldsOf(name), 11, 13), 0)
  return (spent(own, 11, 15) + children) / ticks
}

type Counters = {
  at: number
  commits: number
  inserted: number
  updated: number
  deleted: number
  fetched: number
  walBytes: number
}

const countersNow = async (sql: Sql): Promise<Counters> => {
  const [row] = await sql<[Omit<Counters, 'at'>]>`
    select xact_commit::float8 as commits, tup_inserted::float8 as inserted, tup_updated::float8 as updated,
      tup_deleted::float8 as deleted, tup_fetched::float8 as fetched,
      (pg_current_wal_lsn() - '0/0')::float8 as "walBytes"
    from pg_stat_database where datname = current_database()`
  return { at: performance.now(), ...row }
}

const perSecond = (before: Counters, after: Counters) => {
  const passed = (after.at - before.at) / 1000
  const rateOf = (name: keyof Counters) => Math.round((after[name] - before[name]) / passed)
  return {
    ...{ commits: rateOf('commits'), rowsInserted: rateOf('inserted'), rowsUpdated: rateOf('updated') },
    ...{ rowsDeleted: rateOf('deleted'), rowsFetched: rateOf('fetched'), walBytes: rateOf('walBytes') },
  }
}

type Programs = Record<'control' | 'postgres' | 'hosts', number>

/**
 * Runs `work`. Measures how much processor time the programs use during this work, and how many rows and bytes PostgreSQL writes.
 */
const watch = async <T>(pids: Programs, work: () => Promise<T>) => {
  const spent = () => Object.entries(pids).map(([name, pid]) => [name, processorOf(pid)] as const)
  const [rows, before] = [await countersNow(database.sql), spent()]
  const result = await work()
  const [rowsAfter, after] = [await countersNow(database.sql), spent()]
  const passed = (rowsAfter.at - rows.at) / 1000
  const processors = Object.fromEntries(
    after.map(([name, total], at) => [name, Math.round(((total - before[at]![1]) / passed) * 1000) / 1000]),
  )
  return { result, postgresPerSecond: perSecond(rows, rowsAfter), processorsInUse: processors }
}

const countsOf = async (fleet: ChildProcess): Promise<FleetCounts> => {
  fleet.send('counts')
  const [counts] = (await once(fleet, 'message')) as [FleetCounts]
  return counts
}

const untilFleet = async (fleet: ChildProcess, is: (counts: FleetCounts) => boolean, withinMs: number) => {
  const began = performance.now()
  for (;;) {
    const counts = await countsOf(fleet)
    if (is(counts)) return performance.now() - began
    if (performance.now() - began > withinMs) throw new Error(`the hosts are ${JSON.stringify(counts)}`)
    await pause(100)
  }
}

type Reply = { status: number; body: { id?: string; state?: string } }

/** Sends creates at the rate `--rate`, and deletes each sandbox some seconds later. Meanwhile, reads pages of the list. */
const load = async (base: string) => {
  const pool = new Pool(new URL(base).origin, { connections: 128 })
  const call = async (method: string, path: string, key: string, body?: object): Promise<Reply> => {
    const reply = await pool.request({
      ...{ method: method as 'GET', path: `/api${path}` },
      headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return { status: reply.statusCode, body: (await reply.body.json().catch(() => ({}))) as Reply['body'] }
  }
  const samples: Record<'create' | 'page' | 'delete', Samples> = { create: [], page: [], delete: [] }
  const statuses: Record<string, number> = {}
  const timedCall = async (kind: keyof typeof samples, ...rest: Parameters<typeof call>) => {
    const before = performance.now()
    const reply = await call(...rest)
    samples[kind].push(performance.now() - before)
    const outcome = `${kind} ${reply.status}${reply.body.state ? ` ${reply.body.state}` : ''}`
    statuses[outcome] = (statuses[outcome] ?? 0) + 1
    return reply
  }
  const callers = [keys.owner, keys.stranger]
  let [open, notMade] = [0, 0]
  const running = new Set<Promise<unknown>>()
  const track = (work: Promise<unknown>) => {
    const done = work.catch((error) => {
      statuses[String(error)] = (statuses[String(error)] ?? 0) + 1
    })
    running.add(done)
    void done.finally(() => running.delete(done))
  }
  const createOne = async (key: string) => {
    open += 1
    const { body } = await timedCall('create', 'POST', '/sandbox', key, {}).finally(() => {
      open -= 1
    })
    if (body.id === undefined) return
    await pause(3000)
    await timedCall('delete', 'DELETE', `/sandbox/${body.id}`, key)
  }
  const began = performance.now()
  let [made, listed] = [0, 0]
  while (performance.now() - began < seconds * 1000) {
    const passed = performance.now() - began
    while (made + notMade < (passed * rate) / 1000) {
      if (open >= mostOpen) notMade += 1
      else track(createOne(callers[made++ % callers.length]!))
    }
    if (passed >= listed * listEveryMs) {
      track(timedCall('page', 'GET', '/sandbox?limit=100', callers[listed % callers.length]!))
      listed += 1
    }
    await pause(5)
  }
  const createsPerSecond = samples.create.length / ((performance.now() - began) / 1000)
  await Promise.all(running)
  await pool.close()
  return { createsPerSecond, notMade, statuses, samples }
}

const startFleet = (base: string): ChildProcess => {
  const fleet = fork(join(import.meta.dirname, 'fleet/hosts.ts'))
  const all = Array.from({ length: hosts }, (_, at) => ({ id: `host-${at}`, token: tokenOf(at) }))
  fleet.send({ base, hosts: all, doneAfterMs, meterSeconds } satisfies FleetStart)
  stops.push(() => fleet.kill('SIGKILL'))
  return fleet
}

const summary = (samples: Samples) => ({
  ...{
    n: samples.length,
    p50: percentile(samples, 0.5),
    p95: percentile(samples, 0.95),
    p99: percentile(samples, 0.99),
  },
})

try {
  await migrate(database)
  await bootstrap({ database, clock: systemClock, log, settings: testSettings }, keys.admin)
  await settle(database.sql)
  console.log(`filling the database with ${hosts} hosts and ${sandboxes} sandboxes …`)
  await database.transaction(async (sql) => {
    await sql`set local statement_timeout = 0`
    await fill(sql)
  })
  await database.sql`vacuum analyze`
  await whenAsked()
  let control = await startControlProcess(postgres.url)
  stops.push(() => control.kill())
  const { port } = new URL(control.base)
  const fleet = startFleet(control.base)
  const arrivalMs = await untilFleet(fleet, ({ linked, listed }) => linked >= hosts && listed >= hosts, 300_000)
  console.log(`all hosts are linked and have read their lists after ${(arrivalMs / 1000).toFixed(1)} s`)
  const pids = () => ({ control: control.pid, postgres: postgres.pid, hosts: fleet.pid! })
  const quiet = await watch(pids(), () => pause(Math.max(10, meterSeconds) * 1000))
  console.log('quiet:', JSON.stringify({ ...quiet, result: undefined }))
  const loaded = await watch(pids(), () => load(control.base))
  const { samples, ...outcome } = loaded.result
  console.log('load:', JSON.stringify({ ...loaded, result: outcome }, null, 1))
  for (const [name, taken] of Object.entries(samples)) console.log(name.padEnd(8), JSON.stringify(summary(taken)))
  const before = await countsOf(fleet)
  await control.kill()
  control = await startControlProcess(postgres.url, { ALCOVE_LISTEN: `127.0.0.1:${port}` })
  const returned = ({ linked, listed }: FleetCounts) => linked >= hosts && listed >= before.listed + hosts
  const returnMs = await untilFleet(fleet, returned, 300_000)
  console.log(`after kill -9 of control all hosts are back after ${(returnMs / 1000).toFixed(1)} s`)
  console.log(
    keep('fleet', {
      ...{ hosts, sandboxes, rate, seconds, doneAfterMs, meterSeconds, arrivalMs, returnMs },
      ...{ quiet: { ...quiet, result: undefined }, load: { ...loaded, result: outcome }, samples },
    }),
  )
} finally {
  for (const stop of stops) await stop()
  await database.close()
  await postgres.stop()
  await rm(directory, { recursive: true, force: true })
}
