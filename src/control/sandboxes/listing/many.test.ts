// Listings of thousands of sandboxes. The first rows that a listing reads (`firstLook`) contain too few matches for a page. Each
// listing must equal the result of a filter in JavaScript.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { insertMany, populate } from '#test/control/population.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import type { SandboxListItem } from '../record/schemas.ts'

const now = new Date('2026-06-01T00:00:00Z')
const daysAgo = (days: number) => new Date(now.getTime() - days * 86_400_000)

const walk = async (app: TestControl, question: string, between?: (page: number) => Promise<void>) => {
  const items: SandboxListItem[] = []
  for (let cursor: string | null = '', page = 0; cursor !== null; page++) {
    const after: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const reply = await app.as('viewer').get(`/sandbox?limit=200&${encodeURI(question)}${after}`)
    assert.equal(reply.status, 200, reply.text)
    items.push(...reply.body.items)
    cursor = reply.body.nextCursor
    await between?.(page)
  }
  return items
}

type Sorted = { sort: string; key: (row: SandboxRow) => string | number | Date }

const sorts: Sorted[] = [
  { sort: 'name', key: (row) => row.name },
  { sort: 'cpu', key: (row) => row.cpu },
  { sort: 'memoryGib', key: (row) => row.memory_gib },
  { sort: 'diskGib', key: (row) => row.disk_gib },
  { sort: 'lastActivityAt', key: (row) => row.last_activity_at },
  { sort: 'createdAt', key: (row) => row.created_at },
]

const questions: [question: string, is: (row: SandboxRow) => boolean][] = [
  ['states=stopped', (row) => row.state === 'stopped'],
  ['states=archived', (row) => row.state === 'archived'],
  ['states=paused', () => false],
  ['labels={"env":"prod"}', (row) => row.labels['env'] === 'prod'],
  ['labels={"tier":"gold"}', (row) => row.labels['tier'] === 'gold'],
  ['labels={"env":"prod","team":"team-7"}', () => false],
  [
    'labels={"env":"prod"}&states=stopped&minCpu=1.5',
    (row) => row.labels['env'] === 'prod' && row.state === 'stopped' && row.cpu >= 2,
  ],
  ['snapshots=gpu-tools', (row) => row.snapshot === 'gpu-tools'],
  ['name=agent-a', (row) => row.name.startsWith('agent-a')],
  ['maxMemoryGiB=1&isPublic=true', (row) => row.memory_gib <= 1 && row.public],
  [`createdAtBefore=${daysAgo(98).toISOString()}`, (row) => row.created_at <= daysAgo(98)],
  [
    `lastEventBefore=${daysAgo(60).toISOString()}&sandboxClasses=linux-vm`,
    (row) =>
      row.state_changed_at <= daysAgo(60) && row.last_activity_at <= daysAgo(60) && row.sandbox_class === 'linux-vm',
  ],
  ['isPublic=true&labels={"env":"dev"}', () => false],
  ['minCpu=2&maxCpu=4&snapshots=python', ({ cpu, snapshot }) => cpu >= 2 && cpu <= 4 && snapshot === 'python'],
  ['labels={"env":"dev","team":"team-11"}', (row) => row.labels['team'] === 'team-11'],
  [
    `lastEventAfter=${daysAgo(20).toISOString()}&labels={"team":"team-11"}`,
    (row) =>
      (row.state_changed_at >= daysAgo(20) || row.last_activity_at >= daysAgo(20)) && row.labels['team'] === 'team-11',
  ],
  ['states=stopped&states=archived&states=stopped', ({ state }) => state === 'stopped' || state === 'archived'],
  [
    `createdAtAfter=${daysAgo(90).toISOString()}&createdAtBefore=${daysAgo(85).toISOString()}&isPublic=false`,
    (row) => row.created_at >= daysAgo(90) && row.created_at <= daysAgo(85) && !row.public,
  ],
  ['isRecoverable=true', (row) => row.recoverable === true],
  ['name=agent-a&isPublic=false', (row) => row.name.startsWith('agent-a') && !row.public],
  [
    'minMemoryGiB=2&maxMemoryGiB=8&states=stopped',
    (row) => row.memory_gib >= 2 && row.memory_gib <= 8 && row.state === 'stopped',
  ],
  [
    'maxDiskGiB=3&labels={"env":"prod"}&states=archived&states=error',
    (row) => row.disk_gib <= 3 && row.labels['env'] === 'prod' && (row.state === 'archived' || row.state === 'error'),
  ],
  [
    'states=stopped&labels={"team":"team-11"}&name=agent-b',
    (row) => row.state === 'stopped' && row.labels['team'] === 'team-11' && row.name.startsWith('agent-b'),
  ],
  ['sandboxClasses=linux-vm&isPublic=false', () => false],
]

suite('GET /sandbox with thousands of sandboxes', () => {
  test('GET /sandbox over 6000 sandboxes gives the same result as filtering and sorting in memory', async () => {
    await using app = await startControl()
    await populate(app.database, [{ organizationId: organizations.ours, count: 6000 }], now)
    const rows = await app.database.sql<SandboxRow[]>`select * from sandboxes`
    const listed = rows.filter((row) => row.state !== 'destroyed' && row.warm_pool_id === null)
    for (const [index, [question, is]] of questions.entries()) {
      const { sort, key } = sorts[index % sorts.length]!
      for (const order of ['asc', 'desc']) {
        const direction = order === 'asc' ? 1 : -1
        const expected = listed
          .filter(is)
          .map((row) => ({ id: row.id, key: key(row) }))
          .sort((a, b) => direction * (a.key < b.key ? -1 : a.key > b.key ? 1 : a.id < b.id ? -1 : 1))
          .map(({ id }) => id)
        const found = await walk(app, `${question}&sort=${sort}&order=${order}`)
        assert.deepEqual(
          found.map(({ id }) => id),
          expected,
          `${question} by ${sort} ${order}`,
        )
      }
      const { body } = await app.as('viewer').get(`/sandbox/paginated?${encodeURI(question)}`)
      if (!/isPublic|isRecoverable|createdAt|sandboxClasses/.test(question))
        assert.equal(body.total, listed.filter(is).length, question)
    }
  })

  test('GET /sandbox lists each unchanged sandbox once, even while others are made, changed or deleted', async () => {
    await using app = await startControl()
    const { sql } = app.database
    await insertMany(sql, { organizationId: organizations.ours, count: 3000 }, now)
    for (const { sort, column } of [
      { sort: 'createdAt', column: sql`created_at` },
      { sort: 'lastActivityAt', column: sql`last_activity_at` },
    ]) {
      const stays = await sql<{ id: string }[]>`
        select id from sandboxes where state <> 'destroyed' and warm_pool_id is null and hashtext(id) % 3 = 0`
      const found = await walk(app, `sort=${sort}`, async (page) => {
        // Changes the sort key of some sandboxes, and deletes others. Sandboxes with `hashtext(id) % 3 = 0` do not change, so each
        // of them must be listed exactly once.
        await sql`
          update sandboxes set ${column} = ${now}::timestamptz - (page.n - 50) * interval '1 day', version = version + 1
          from (select ${page * 7}::int as n) page
          where hashtext(id) % 3 <> 0 and abs(hashtext(id)) % 11 = ${page % 11}`
        await sql`
          update sandboxes set state = 'destroyed', desired_state = 'destroyed'
          where hashtext(id) % 3 <> 0 and abs(hashtext(id)) % 53 = ${page}`
        // Changes other columns of the sandboxes that must be listed exactly once. The sort key of these sandboxes stays.
        await sql`
          update sandboxes set version = version + 1, labels = '{}', public = not public, state_changed_at = ${now}
          where hashtext(id) % 3 = 0 and abs(hashtext(id)) % 5 = ${page % 5}`
        await insertMany(sql, { organizationId: organizations.ours, count: 20 }, now)
      })
      const times = new Map<string, number>()
      for (const { id } of found) times.set(id, (times.get(id) ?? 0) + 1)
      const wrong = stays.filter(({ id }) => times.get(id) !== 1)
      assert.deepEqual(wrong, [], sort)
    }
  })

  test('GET /sandbox pages through sandboxes with names of the maximum length', async () => {
    await using app = await startControl()
    await insertMany(app.database.sql, { organizationId: organizations.ours, count: 10 }, now)
    await app.database.sql`
      update sandboxes set name = substr(id, 1, 8) || (select string_agg(chr(19968 + (n * 7919) % 20000), '') from
        generate_series(1, 247) n), snapshot = (select string_agg(chr(19968 + (n * 104729) % 20000), '') from
        generate_series(1, 255) n)`
    assert.equal((await walk(app, 'sort=cpu&includeWarm=true&includeErroredDeleted=true')).length, 9)
  })
})
