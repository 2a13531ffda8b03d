import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'

const addSnapshot = async ({ database: { sql } }: TestControl, name: string, organizationId: string, usedAt?: Date) => {
  const [row] = await sql<{ id: string }[]>`
    insert into snapshots (organization_id, name, state, image, cpu, memory_gib, disk_gib, last_used_at)
    values (${organizationId}, ${name}, 'active', ${name}, 2, 4, 8, ${usedAt ?? null}) returning id`
  return row!.id
}

/** General snapshots that every server has, besides `default`. */
const sizes = ['daytona-large', 'daytona-medium', 'daytona-small']
const general = [...sizes, 'default', 'desktop']

const namesOf = (page: { items: { name: string }[] }) => page.items.map(({ name }) => name)

suite('GET /snapshots', () => {
  test('GET /snapshots returns the organization’s own snapshots and the general snapshots, and no others', async () => {
    await using app = await startControl()
    await addSnapshot(app, 'ours', organizations.ours)
    await addSnapshot(app, 'theirs', organizations.theirs)
    const reply = await app.as('viewer').get('/snapshots?sort=name&order=asc')
    assert.equal(reply.status, 200)
    assert.deepEqual(namesOf(reply.body), [...general, 'ours'])
    assert.deepEqual([reply.body.total, reply.body.page, reply.body.totalPages], [6, 1, 1])
  })

  test('GET /snapshots returns pages in the requested order; by default, the most recently used snapshot is first', async () => {
    await using app = await startControl()
    await addSnapshot(app, 'old', organizations.ours, new Date('2020-01-01'))
    await addSnapshot(app, 'new', organizations.ours, new Date('2024-01-01'))
    const ask = async (query: string) => namesOf((await app.as('viewer').get(`/snapshots?${query}`)).body)
    assert.deepEqual((await ask('')).slice(0, 2), ['new', 'old'])
    assert.deepEqual((await ask('order=asc')).slice(-2), ['old', 'new'])
    assert.deepEqual(await ask('sort=name&order=asc&limit=3&page=2'), ['default', 'desktop', 'new'])
    assert.deepEqual(await ask('page=9'), [])
    assert.deepEqual(await ask('name=EF'), ['default'])
    assert.deepEqual(await ask('name=%25'), [])
  })

  test('GET /snapshots answers 400 for an invalid page, limit, order or sort', async () => {
    await using app = await startControl()
    for (const query of [
      'page=0',
      'page=x',
      'limit=0',
      'limit=201',
      'order=up',
      'sort=id',
      'page=99999999999999999999',
    ]) {
      assert.equal((await app.as('viewer').get(`/snapshots?${query}`)).status, 400, query)
    }
  })
})

suite('GET /snapshots/{idOrName}', () => {
  test('GET /snapshots/{idOrName} finds a snapshot by name and by id, and returns the size of the snapshot’s sandboxes', async () => {
    await using app = await startControl()
    const id = await addSnapshot(app, 'ours', organizations.ours)
    const byName = await app.as('viewer').get('/snapshots/ours')
    const byId = await app.as('viewer').get(`/snapshots/${id}`)
    assert.equal(byName.status, 200)
    assert.deepEqual(byName.body, byId.body)
    const { createdAt: _, updatedAt: __, ...rest } = byName.body
    assert.deepEqual(rest, {
      id,
      organizationId: organizations.ours,
      general: false,
      name: 'ours',
      state: 'active',
      size: null,
      entrypoint: null,
      cpu: 2,
      gpu: 0,
      mem: 4,
      disk: 8,
      errorReason: null,
      lastUsedAt: null,
      sourceSandboxId: null,
      ref: 'ours',
      sandboxClass: 'container',
    })
  })

  test('GET /snapshots/{idOrName} returns the organization’s own snapshot if a general snapshot has the same name', async () => {
    await using app = await startControl()
    const id = await addSnapshot(app, 'default', organizations.ours)
    assert.equal((await app.as('viewer').get('/snapshots/default')).body.id, id)
    assert.notEqual((await app.as('stranger').get('/snapshots/default')).body.id, id)
  })

  test('GET /snapshots/{idOrName} answers 404 for an unknown snapshot and for another organization’s', async () => {
    await using app = await startControl()
    const id = await addSnapshot(app, 'theirs', organizations.theirs)
    for (const idOrName of [id, 'theirs', 'no-such']) {
      assert.equal((await app.as('owner').get(`/snapshots/${idOrName}`)).status, 404)
    }
  })
})
