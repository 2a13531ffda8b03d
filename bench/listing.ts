// Measures how long one page of `GET /sandbox` takes over HTTP, with 100,000 sandboxes in the embedded database. Uses every kind of
// filter, for a large and a small organization. `node bench/listing.ts [rounds] [wait]`, as root.
import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { createApp } from '#src/control/app.ts'
import { bootstrap } from '#src/control/bootstrap.ts'
import { openDatabase } from '#src/control/storage/database.ts'
import { migrate } from '#src/control/storage/migrate.ts'
import { systemClock } from '#src/kit/clock.ts'
import { silentLog } from '#src/kit/log.ts'
import { startPostgres } from '#src/postgres/embedded.ts'
import { keys, organizations, settle } from '#test/control/people.ts'
import { populate } from '#test/control/population.ts'
import { testEncryption, testSettings } from '#test/control/test-settings.ts'

import { keep, median, percentile, type Samples, timed, whenAsked } from './samples.ts'

const rounds = Number(process.argv[2] ?? 200)
const [largest = 50_000, second = 30_000] = process.argv
  .slice(3)
  .filter((word) => word !== 'wait')
  .map(Number)
const shares = [
  { organizationId: organizations.ours, count: largest },
  { organizationId: organizations.theirs, count: second },
  ...['third', 'fourth', 'fifth', 'sixth'].map((organizationId) => ({
    organizationId,
    count: (100_000 - largest - second) / 4,
  })),
]

const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString()

const questions: Record<string, string> = {
  'no filter': '',
  'every sort: name': 'sort=name&order=asc',
  'every sort: cpu': 'sort=cpu',
  'every sort: cpu, ascending': 'sort=cpu&order=asc',
  'every sort: memory': 'sort=memoryGib',
  'every sort: disk': 'sort=diskGib&order=asc',
  'every sort: creation': 'sort=createdAt&order=asc',
  'every sort: name, descending': 'sort=name',
  'every sort: memory, ascending': 'sort=memoryGib&order=asc',
  'every sort: disk, descending': 'sort=diskGib',
  'every sort: creation, descending': 'sort=createdAt',
  'every sort: activity, ascending': 'order=asc',
  'state, with the sort': 'states=started',
  'state, against the sort': 'states=stopped',
  'state, against another sort': 'states=stopped&sort=createdAt',
  'rare state': 'states=archived',
  'rare state, other sort': 'states=archived&sort=cpu&order=asc',
  'states, two': 'states=archived&states=error&sort=diskGib',
  'id prefix': 'id=ab1',
  'name prefix, common': 'name=agent-&sort=cpu',
  'name prefix, rare': 'name=agent-ab1&sort=memoryGib',
  'name prefix, of nothing': 'name=zzz&sort=cpu',
  'label, common': 'labels={"env":"prod"}',
  'label, in 1 of 20': 'labels={"team":"team-7"}&sort=cpu',
  'label, rare': 'labels={"tier":"gold"}&sort=name',
  'label, of one': 'labels={"user":"user-4711"}',
  'label, of none': 'labels={"user":"nobody"}&sort=cpu',
  'labels that exclude each other': 'labels={"team":"team-7","env":"prod"}&sort=createdAt',
  'label and a rare state': 'labels={"env":"dev"}&states=archived&sort=name',
  'label and a state, against the sort': 'labels={"env":"prod"}&states=stopped',
  'snapshot, common': 'snapshots=python&sort=memoryGib',
  'snapshot, rare': 'snapshots=gpu-tools&sort=createdAt',
  'snapshot, of none': 'snapshots=nothing&sort=cpu',
  sizes: 'minCpu=4&maxMemoryGiB=2&sort=createdAt',
  'sizes of nothing': 'minCpu=64&sort=name',
  'created lately': `createdAtAfter=${hoursAgo(66 * 24)}&sort=cpu`,
  'created long ago, newest first': `createdAtBefore=${hoursAgo(95 * 24)}&sort=createdAt`,
  'created long ago, by activity': `createdAtBefore=${hoursAgo(99 * 24)}`,
  'changed in the last hour': `lastEventAfter=${hoursAgo(1)}&sort=name`,
  'not changed for 60 days': `lastEventBefore=${hoursAgo(60 * 24)}`,
  'destroyed within 25 days': `autoDestroyAtBefore=${hoursAgo(-25 * 24)}&sort=name`,
  public: 'isPublic=true&sort=cpu',
  recoverable: 'isRecoverable=true',
  class: 'sandboxClasses=linux-vm&sort=diskGib',
  'class of nothing': 'sandboxClasses=windows',
  'with warm and errored': 'includeWarm=true&includeErroredDeleted=true&sort=name',
  'state and class': 'states=stopped&sandboxClasses=linux-vm&sort=name',
  'state and public, by creation': 'states=stopped&isPublic=true&sort=createdAt',
  'region and snapshot, by cpu': 'regionIds=local&snapshots=python&sort=cpu&order=asc',
  'name prefix and a rare state': 'name=agent-&states=error&sort=memoryGib',
  'changed lately and labelled': `lastEventAfter=${hoursAgo(2)}&labels={"team":"team-11"}&sort=diskGib`,
  'changed long ago and large': `lastEventBefore=${hoursAgo(50 * 24)}&minCpu=8&sort=createdAt&order=asc`,
  'everything at once': `name=a&states=stopped&labels={"team":"team-11"}&minCpu=2&isPublic=false&createdAtAfter=${hoursAgo(90 * 24)}&sort=memoryGib`,
  'two labels': 'labels={"team":"team-6","env":"prod"}&sort=diskGib',
  'state and label of nothing, each common': 'states=stopped&labels={"team":"team-7"}&sort=createdAt',
  'state and label, by another sort': 'states=stopped&labels={"team":"team-11"}&sort=name',
  'state and name prefix of nothing, each common': 'states=stopped&name=ci-&sort=cpu',
  'state and name prefix, against the sort': 'states=stopped&name=build-&order=desc',
  'states, against the sort': 'states=stopped&states=archived',
  'changed within ten days': `lastEventAfter=${hoursAgo(40 * 24)}&lastEventBefore=${hoursAgo(30 * 24)}&sort=cpu`,
  'changed within ten days, by activity': `lastEventAfter=${hoursAgo(40 * 24)}&lastEventBefore=${hoursAgo(30 * 24)}&order=asc`,
  'created within a day': `createdAtAfter=${hoursAgo(80 * 24)}&createdAtBefore=${hoursAgo(79 * 24)}&sort=name`,
  'created within a day, recoverable': `createdAtAfter=${hoursAgo(80 * 24)}&createdAtBefore=${hoursAgo(79 * 24)}&isRecoverable=true`,
  'sizes within bounds': 'minCpu=2&maxCpu=4&minDiskGiB=30&sort=name',
  'large and small': 'minCpu=8&maxMemoryGiB=1&minDiskGiB=30&snapshots=python&isPublic=true',
  'class and public': 'sandboxClasses=linux-vm&isPublic=true&snapshots=default&sort=name',
  'class and private, of nothing': 'sandboxClasses=linux-vm&isPublic=false&sort=name',
  'snapshot and label of nothing, each common': 'snapshots=python&labels={"team":"team-7"}&sort=createdAt',
  'snapshot and name prefix, public': 'snapshots=python&name=build-&isPublic=true&sort=memoryGib',
  'snapshot and name prefix of nothing, public': 'snapshots=python&name=agent-&isPublic=true&sort=memoryGib',
  'public and label of nothing, each common': 'isPublic=true&labels={"env":"dev"}&sort=cpu',
  'name prefix, in 1 of 80': 'name=agent-a&sort=diskGib&order=asc',
  'name prefix, in 1 of 80, by activity': 'name=agent-a&isPublic=false&states=started',
  'destroyed within 25 days, oldest': `autoDestroyAtBefore=${hoursAgo(-25 * 24)}&order=asc`,
  'recoverable, by name': 'isRecoverable=true&sort=name',
  'filters of nothing, each common': `states=stopped&lastEventAfter=${hoursAgo(20)}&isPublic=true&sort=cpu`,
}

const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

const processorTimeOf = (pid: number) => Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6

const directory = await mkdtemp(join(tmpdir(), 'alcove-bench-'))
await chmod(directory, 0o711)
const log = silentLog()
const uid = 64_203
const postgres = await startPostgres({
  directory: join(directory, 'data'),
  socketDirectory: join(directory, 'socket'),
  uid,
  gid: uid,
  log,
})
const database = openDatabase(postgres.url)
try {
  await migrate(database)
  const parts = { database, clock: systemClock, log, settings: testSettings, encryption: testEncryption }
  await bootstrap(parts, keys.admin)
  await settle(database.sql)
  await populate(database, shares, new Date())
  const app = await createApp(parts, { sweepSeconds: 0 })
  const client = new Pool(await app.server.listen({ host: '127.0.0.1', port: 0 }), { connections: 4 })
  const ask = async (path: string, key: string) => {
    const reply = await client.request({ method: 'GET', path, headers: { authorization: `Bearer ${key}` } })
    const text = await reply.body.text()
    if (reply.statusCode !== 200) throw new Error(`${path}: ${reply.statusCode} ${text}`)
    return text
  }

  /**
   * The processor time of the database and of control, in ms. Unlike a duration, it does not depend on other load of the machine.
   */
  const processorTime = () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000 + childrenOf(postgres.pid).reduce((sum, pid) => sum + processorTimeOf(pid), 0)
  }

  await whenAsked()
  const samples: Record<string, Samples> = {}
  const processor: Record<string, number> = {}
  const measure = async (name: string, paths: readonly string[], key = keys.owner) => {
    // The first calls of each route are not measured, because they compile its code.
    for (let n = 0; n < 5; n++) await ask(paths[n % paths.length]!, key)
    const taken: Samples = []
    const before = processorTime()
    for (let n = 0; n < rounds; n++) taken.push(await timed(() => ask(paths[n % paths.length]!, key)))
    processor[name] = (processorTime() - before) / rounds
    samples[name] = taken
    return taken
  }
  const floor = median(await measure('floor: GET /api-keys/current', ['/api/api-keys/current']))
  const row = (name: string, note = '') => {
    const taken = samples[name]!
    const figures = [median(taken), percentile(taken, 0.95), percentile(taken, 0.99)].map((ms) =>
      ms.toFixed(2).padStart(8),
    )
    const ratio = (median(taken) / floor).toFixed(1).padStart(8)
    console.log(
      `${name.padEnd(40)}${figures.join('')}${ratio}${(processor[name] ?? 0).toFixed(1).padStart(8)}  ${note}`,
    )
  }
  const pathOf = (question: string) => `/api/sandbox?limit=100&${encodeURI(question)}`
  const found = (text: string) => `${(JSON.parse(text) as { items: unknown[] }).items.length} items`

  console.log(
    `${`${largest} of 100,000 in the organization that asks`.padEnd(40)}     p50     p95     p99 x floor cpu ms`,
  )
  row('floor: GET /api-keys/current')
  for (const [name, question] of Object.entries(questions)) {
    await measure(name, [pathOf(question)])
    row(name, found(await ask(pathOf(question), keys.owner)))
  }
  // Pages far from the beginning of the list. A listing with an offset would have to skip all rows before such a page.
  const deep: string[] = []
  for (let cursor = ''; deep.length < 40; ) {
    const { nextCursor } = JSON.parse(await ask(`/api/sandbox?limit=200${cursor}`, keys.owner)) as {
      nextCursor: string
    }
    cursor = `&cursor=${encodeURIComponent(nextCursor)}`
    deep.push(`${pathOf('')}${cursor}`)
  }
  await measure('after a cursor, 2,000 to 8,000 in', deep.slice(10))
  row('after a cursor, 2,000 to 8,000 in')
  await measure('of a smaller organization, by state', [pathOf('states=stopped&sort=cpu')], keys.stranger)
  row('of a smaller organization, by state')

  const all = Object.entries(samples).flatMap(([name, taken]) => (name.startsWith('floor') ? [] : taken))
  samples['all of the above'] = all
  row('all of the above')

  console.log('GET /sandbox/paginated (deprecated), with its total')
  for (const [name, question] of Object.entries({
    'paginated: no filter': '',
    'paginated: by name': 'sort=name&order=asc',
    'paginated: by state': 'sort=state',
    'paginated: page 400': 'page=400',
    'paginated: part of a name': 'name=ab1',
    'paginated: rare label': 'labels={"tier":"gold"}',
    'paginated: common label': 'labels={"env":"prod"}',
  })) {
    await measure(name, [`/api/sandbox/paginated?limit=100&${encodeURI(question)}`])
    row(name)
  }
  console.log(keep('listing', { shares, rounds, processor, samples }))
  await client.close()
  await app.close()
} finally {
  await database.close()
  await postgres.stop()
  await rm(directory, { recursive: true, force: true })
}
