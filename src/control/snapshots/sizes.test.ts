import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

const sizes = [
  ['daytona-small', 1, 1, 3],
  ['daytona-medium', 2, 4, 8],
  ['daytona-large', 4, 8, 10],
] as const

/**
 * Inserts a snapshot of the organization `ours`. The tests give the snapshot the name of a general snapshot that has another size.
 */
const addOwn = ({ database: { sql } }: TestControl, name: string) => sql`
  insert into snapshots (organization_id, name, state, image, cpu, memory_gib, disk_gib)
  values (${organizations.ours}, ${name}, 'active', 'default', 3, 5, 7)`

suite('the sizes of the default snapshot', () => {
  test('the built-in image has a general snapshot for each size, which can be listed and found by name', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    const listed = (await app.as('viewer').get('/snapshots?limit=200')).body.items
    for (const [name, cpu, mem, disk] of sizes) {
      const { status, body } = await app.as('viewer').get(`/snapshots/${name}`)
      assert.deepEqual(
        [status, body.general, body.state, body.cpu, body.mem, body.disk],
        [200, true, 'active', cpu, mem, disk],
      )
      assert.ok(listed.some((item: { id: string }) => item.id === body.id))
    }
  })

  test('a sandbox made from the snapshot daytona-small has that snapshot’s size and runs the default image', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    for (const [snapshot, cpu, memory, disk] of sizes) {
      const { status, body } = await app.as('owner').post('/sandbox', { snapshot })
      assert.deepEqual([status, body.snapshot, body.cpu, body.memory, body.disk], [200, snapshot, cpu, memory, disk])
      const [row] = await app.database.sql`select image from sandboxes where id = ${body.id}`
      assert.equal(row?.['image'], 'default')
    }
  })

  test('an organization’s own snapshot hides a general snapshot of the same name, in that organization only', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    await addOwn(app, 'daytona-medium')
    const own = await app.as('owner').post('/sandbox', { snapshot: 'daytona-medium' })
    const others = await app.as('stranger').post('/sandbox', { snapshot: 'daytona-medium' })
    assert.deepEqual([own.body.cpu, own.body.memory, own.body.disk], [3, 5, 7])
    assert.deepEqual([others.body.cpu, others.body.memory, others.body.disk], [2, 4, 8])
  })

  test('deleting or deactivating a general snapshot answers 403', async () => {
    await using app = await startControl()
    const { body } = await app.as('owner').get('/snapshots/daytona-small')
    const answers = [
      await app.as('owner').delete(`/snapshots/${body.id}`),
      await app.as('owner').post(`/snapshots/${body.id}/deactivate`),
    ]
    assert.deepEqual(
      answers.map(({ status }) => status),
      [403, 403],
    )
  })
})
