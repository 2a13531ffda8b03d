import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'

type Fields = {
  id: string
  name?: string
  organization_id?: string
  state?: string
  desired_state?: string
  labels?: Record<string, string>
  snapshot?: string
  cpu?: number
  memory_gib?: number
  disk_gib?: number
  public?: boolean
  recoverable?: boolean | null
  warm_pool_id?: string | null
  created_at?: Date
  state_changed_at?: Date
  last_activity_at?: Date
  auto_destroy_at?: Date | null
  spot_evicted_at?: Date
}

const day = (n: number) => new Date(Date.UTC(2026, 0, n))

/** Inserts rows directly into the table, because listings only read the table and need no runner. */
const insert = async ({ database: { sql } }: TestControl, fields: Fields) => {
  const { labels = {}, ...rest } = fields
  await sql`insert into sandboxes ${sql({
    name: fields.id,
    organization_id: organizations.ours,
    region_id: 'local',
    sandbox_class: 'container',
    snapshot_id: 's',
    snapshot: 'default',
    image: 'default',
    os_user: 'daytona',
    env: sql.json({ SECRET: '1' }),
    labels: sql.json(labels),
    public: false,
    network_block_all: false,
    cpu: 1,
    memory_gib: 1,
    disk_gib: 3,
    state: 'started',
    desired_state: 'started',
    version: 1,
    generation: 1,
    auto_stop_interval: 0,
    auto_pause_interval: 0,
    auto_archive_interval: 10_080,
    auto_delete_interval: -1,
    last_activity_at: day(1),
    state_changed_at: day(1),
    preview_token: fields.id,
    signing_key: 'k',
    created_by: 'user-owner',
    created_at: day(1),
    updated_at: day(1),
    ...rest,
  })}`
}

const idsOf = (body: { items: { id: string }[] }) => body.items.map(({ id }) => id)

const query = (fields: Record<string, string | string[]>) => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) for (const each of [value].flat()) search.append(name, each)
  return search.toString()
}

const fill = async (app: TestControl) => {
  await insert(app, {
    id: 'a1',
    name: 'Alpha',
    labels: { team: 'red', tier: '1' },
    cpu: 4,
    created_at: day(2),
    last_activity_at: day(5),
  })
  await insert(app, {
    id: 'a2',
    name: 'alpine',
    labels: { team: 'red' },
    memory_gib: 8,
    public: true,
    created_at: day(3),
    last_activity_at: day(4),
  })
  await insert(app, {
    id: 'b1',
    name: 'be_ta',
    state: 'stopped',
    desired_state: 'stopped',
    disk_gib: 30,
    state_changed_at: day(9),
    last_activity_at: day(3),
  })
  await insert(app, {
    id: 'b2',
    name: 'be%ta',
    state: 'error',
    recoverable: true,
    snapshot: 'tools',
    auto_destroy_at: day(20),
    last_activity_at: day(2),
  })
  await insert(app, { id: 'w1', name: 'warm', warm_pool_id: 'pool' })
  await insert(app, { id: 'e1', name: 'errored', state: 'error', desired_state: 'destroyed' })
  await insert(app, { id: 'd1', name: 'gone', state: 'destroyed', desired_state: 'destroyed' })
  await insert(app, { id: 't1', name: 'theirs', organization_id: organizations.theirs })
}

/**
 * Inserts sandboxes that an operator evicted `hours` hours ago: they were destroyed, because their runner needed the
 * room.
 */
const insertEvicted = (app: TestControl, hours: number, fields: Fields) =>
  insert(app, {
    ...fields,
    state: 'destroyed',
    desired_state: 'destroyed',
    spot_evicted_at: new Date(app.clock.now().getTime() - hours * 3_600_000),
  })

suite('GET /sandbox', () => {
  const filters: [Record<string, string | string[]>, string[]][] = [
    [{}, ['a1', 'a2', 'b1', 'b2']],
    [{ id: 'A' }, ['a1', 'a2']],
    [{ id: '1' }, []],
    [{ name: 'AL' }, ['a1', 'a2']],
    [{ name: 'pha' }, []],
    [{ name: 'be_' }, ['b1']],
    [{ name: 'be%' }, ['b2']],
    [{ labels: '{"team":"red"}' }, ['a1', 'a2']],
    [{ labels: '{"team":"red","tier":"1"}' }, ['a1']],
    [{ labels: '{}' }, ['a1', 'a2', 'b1', 'b2']],
    [{ includeErroredDeleted: 'true' }, ['a1', 'a2', 'b1', 'b2', 'e1']],
    [{ includeWarm: 'true' }, ['a1', 'a2', 'b1', 'b2', 'w1']],
    [{ states: ['stopped', 'error'] }, ['b1', 'b2']],
    [{ states: 'stopped,error' }, ['b1', 'b2']],
    [{ states: 'destroyed' }, []],
    [{ snapshots: 'tools' }, ['b2']],
    [{ regionIds: 'local' }, ['a1', 'a2', 'b1', 'b2']],
    [{ regionIds: 'moon' }, []],
    [{ sandboxClasses: 'container' }, ['a1', 'a2', 'b1', 'b2']],
    [{ sandboxClasses: ['android', 'windows'] }, []],
    [{ minCpu: '2' }, ['a1']],
    [{ minCpu: '1e300' }, []],
    [{ maxCpu: '1e300', minDiskGiB: '29.5' }, ['b1']],
    [{ maxCpu: '1' }, ['a2', 'b1', 'b2']],
    [{ minMemoryGiB: '8', maxMemoryGiB: '8' }, ['a2']],
    [{ minDiskGiB: '30' }, ['b1']],
    [{ maxDiskGiB: '29.5' }, ['a1', 'a2', 'b2']],
    [{ isPublic: 'true' }, ['a2']],
    [{ isPublic: 'false' }, ['a1', 'b1', 'b2']],
    [{ isRecoverable: 'true' }, ['b2']],
    [{ isRecoverable: 'false' }, ['a1', 'a2', 'b1']],
    [{ createdAtAfter: '2026-01-03T00:00:00Z' }, ['a2']],
    [{ createdAtBefore: '2026-01-02T00:00:00+00:00' }, ['a1', 'b1', 'b2']],
    // A time with microseconds and a time zone without a colon is accepted too.
    [{ createdAtBefore: '2026-01-02T02:00:00.000000+0200' }, ['a1', 'b1', 'b2']],
    [{ lastEventAfter: '2026-01-09T00:00:00Z' }, ['b1']],
    [{ lastEventBefore: '2026-01-08T00:00:00Z' }, ['a1', 'a2', 'b2']],
    [{ lastEventAfter: '2026-01-05T00:00:00Z' }, ['a1', 'b1']],
    [{ lastEventBefore: '2026-01-04T00:00:00Z' }, ['a2', 'b2']],
    [{ autoDestroyAtAfter: '2026-01-20T00:00:00Z' }, ['b2']],
    [{ autoDestroyAtBefore: '2026-01-19T00:00:00Z' }, []],
    [{ name: 'a', minCpu: '2', labels: '{"team":"red"}' }, ['a1']],
  ]

  test('GET /sandbox returns only the organization’s sandboxes that match all given filters', async () => {
    await using app = await startControl()
    await fill(app)
    for (const [fields, ids] of filters) {
      const reply = await app.as('viewer').get(`/sandbox?${query({ ...fields, sort: 'name', order: 'asc' })}`)
      assert.equal(reply.status, 200, reply.text)
      assert.deepEqual(idsOf(reply.body).sort(), ids, JSON.stringify(fields))
      assert.equal(reply.body.nextCursor, null)
    }
    assert.deepEqual(idsOf((await app.as('stranger').get('/sandbox')).body), ['t1'])
    assert.equal((await app.as('nobody').get('/sandbox')).status, 401)
  })

  test('GET /sandbox leaves out the fields `env`, `volumes` and `buildInfo`, which only GET /sandbox/{id} returns', async () => {
    await using app = await startControl()
    await fill(app)
    const { items } = (await app.as('viewer').get('/sandbox')).body
    for (const item of items) for (const field of ['env', 'volumes', 'buildInfo']) assert.equal(field in item, false)
  })

  test('GET /sandbox sorts by newest activity by default; with any sort key, the pages list each sandbox once', async () => {
    await using app = await startControl()
    for (let n = 0; n < 23; n++) {
      await insert(app, {
        id: `s${n}`,
        cpu: (n % 3) + 1,
        memory_gib: (n % 2) + 1,
        created_at: day((n % 5) + 1),
        last_activity_at: day((n % 7) + 1),
      })
    }
    assert.deepEqual(
      (await app.as('viewer').get('/sandbox')).body.items.map(
        (each: { lastActivityAt: string }) => each.lastActivityAt,
      ),
      Array.from({ length: 23 }, (_, n) => day((n % 7) + 1).toISOString())
        .sort()
        .reverse(),
    )
    for (const sort of ['name', 'cpu', 'memoryGib', 'diskGib', 'lastActivityAt', 'createdAt']) {
      for (const order of ['asc', 'desc']) {
        const whole = idsOf((await app.as('viewer').get(`/sandbox?sort=${sort}&order=${order}`)).body)
        const pages: string[] = []
        let cursor: string | null = ''
        while (cursor !== null) {
          const at: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
          const { body } = await app.as('viewer').get(`/sandbox?limit=4&sort=${sort}&order=${order}${at}`)
          pages.push(...idsOf(body))
          cursor = body.nextCursor
          if (cursor !== null) {
            const mixed = `/sandbox?sort=${sort === 'cpu' ? 'name' : 'cpu'}&order=${order}&cursor=${encodeURIComponent(cursor)}`
            assert.equal((await app.as('viewer').get(mixed)).status, 400)
          }
        }
        assert.deepEqual(pages, whole, `${sort} ${order}`)
        assert.equal(new Set(pages).size, 23)
      }
    }
  })

  const bad = [
    'limit=0',
    'limit=201',
    'limit=x',
    'limit=1.5',
    'cursor=x',
    'cursor=W10',
    'labels=x',
    'labels=[]',
    'labels=null',
    'labels={"a":1}',
    'labels={"a":"%00"}',
    'states=flying',
    'sandboxClasses=x',
    'minCpu=0',
    'maxDiskGiB=-1',
    'isPublic=maybe',
    'createdAtAfter=yesterday',
    'createdAtAfter=0000-01-01T00:00:00Z',
    'createdAtAfter=9999-12-31T23:59:59-01:00',
    'labels={"a":"\\ud800"}',
    'lastEventBefore=2026-13-01T00:00:00Z',
    'sort=id',
    'order=up',
    'name=%00',
    'includeWarm=2',
  ]

  test('GET /sandbox with the state `destroyed` includes sandboxes that the operator evicted in the last day', async () => {
    await using app = await startControl()
    await fill(app)
    await insertEvicted(app, 1, { id: 'v1', name: 'be', cpu: 4, labels: { team: 'red' }, last_activity_at: day(8) })
    await insertEvicted(app, 23, { id: 'v2', name: 'ålpha', last_activity_at: day(4) })
    await insertEvicted(app, 25, { id: 'v3' })
    await insertEvicted(app, 1, { id: 'v4', organization_id: organizations.theirs })
    const listed = async (fields: Record<string, string | string[]>) =>
      idsOf((await app.as('viewer').get(`/sandbox?${query(fields)}`)).body)
    assert.deepEqual(await listed({}), ['a1', 'a2', 'b1', 'b2'])
    assert.deepEqual(await listed({ states: 'destroyed' }), ['v1', 'v2'])
    assert.deepEqual(await listed({ states: 'destroyed', labels: '{"team":"red"}', minCpu: '4' }), ['v1'])
    const states = ['started', 'destroyed', 'error']
    for (const sort of ['lastActivityAt', 'name', 'cpu']) {
      const whole = await listed({ states, sort, order: 'desc' })
      assert.deepEqual([...whole].sort(), ['a1', 'a2', 'b2', 'v1', 'v2'])
      let seen: string[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const asked = { states, sort, order: 'desc', limit: '1', ...(cursor ? { cursor } : {}) }
        const { body } = await app.as('viewer').get(`/sandbox?${query(asked)}`)
        seen = [...seen, ...idsOf(body)]
        cursor = body.nextCursor
      }
      assert.deepEqual(seen, whole)
    }
    assert.deepEqual(await listed({ states, sort: 'lastActivityAt', order: 'desc' }), ['v1', 'a1', 'v2', 'a2', 'b2'])
    assert.deepEqual(await listed({ states, sort: 'name', order: 'asc' }), ['a1', 'a2', 'v1', 'b2', 'v2'])
    const { body } = await app.as('viewer').get(`/sandbox/paginated?${query({ states: ['destroyed', 'stopped'] })}`)
    assert.deepEqual([body.total, idsOf(body).sort()], [3, ['b1', 'v1', 'v2']])
  })

  test('GET /sandbox answers 400 for invalid parameters', async () => {
    await using app = await startControl()
    for (const each of bad)
      assert.equal(
        (await app.as('viewer').get(`/sandbox?${encodeURI(decodeURI(each)).replaceAll('%2500', '%00')}`)).status,
        400,
        each,
      )
  })
})

suite('GET /sandbox/paginated', () => {
  test('GET /sandbox/paginated returns numbered pages of full records, and finds parts of names in upper or lower case', async () => {
    await using app = await startControl()
    await fill(app)
    const first = (await app.as('viewer').get('/sandbox/paginated?limit=3&sort=name&order=asc')).body
    assert.deepEqual([first.total, first.page, first.totalPages, first.items.length], [4, 1, 2, 3])
    assert.deepEqual(first.items[0].env, { SECRET: '1' })
    const second = (await app.as('viewer').get('/sandbox/paginated?limit=3&page=2&sort=name&order=asc')).body
    assert.equal(second.items.length, 1)
    assert.deepEqual(idsOf((await app.as('viewer').get('/sandbox/paginated?name=PHA')).body), ['a1'])
    assert.deepEqual(idsOf((await app.as('viewer').get('/sandbox/paginated?id=2&sort=id&order=asc')).body), [
      'a2',
      'b2',
    ])
    assert.deepEqual(idsOf((await app.as('viewer').get('/sandbox/paginated?regions=moon')).body), [])
    const past = (await app.as('viewer').get('/sandbox/paginated?page=99')).body
    assert.deepEqual([past.items, past.total], [[], 4])
  })

  test('GET /sandbox/paginated sorts by every field, and answers 400 for bad parameters, 401 without a key', async () => {
    await using app = await startControl()
    await fill(app)
    for (const sort of ['id', 'name', 'state', 'snapshot', 'region', 'updatedAt', 'createdAt', 'lastActivityAt']) {
      assert.equal((await app.as('viewer').get(`/sandbox/paginated?sort=${sort}`)).body.items.length, 4, sort)
    }
    for (const bad of ['page=0', 'page=x', 'limit=201', 'sort=cpu', 'labels=x']) {
      assert.equal((await app.as('viewer').get(`/sandbox/paginated?${bad}`)).status, 400, bad)
    }
    assert.equal((await app.as('nobody').get('/sandbox/paginated')).status, 401)
  })
})
