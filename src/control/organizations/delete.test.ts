import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations, userId } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

const { ours, theirs } = organizations
const path = `/organizations/${ours}`
const patient = { sandboxes: { createWaitSeconds: 20 } }

/** Returns the tables that still have rows of the deleted organization. The audit log keeps its rows. */
const tracesOf = async ({ database: { sql } }: TestControl): Promise<string[]> => {
  const columns = await sql<{ table_name: string }[]>`
    select table_name from information_schema.columns
    where table_schema = 'public' and column_name = 'organization_id' and table_name <> 'audit_log'`
  const found: string[] = []
  for (const { table_name: table } of columns) {
    const [row] = await sql`select 1 from ${sql(table)} where organization_id = ${ours} limit 1`
    if (row) found.push(table)
  }
  return found
}

const untilForgotten = async (app: TestControl) => {
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    await app.sweep()
    if ((await tracesOf(app)).length === 0) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.deepEqual(await tracesOf(app), [])
}

suite('DELETE /organizations/{organizationId}', () => {
  test('DELETE /organizations/{organizationId} makes all the organization’s credentials invalid immediately, then destroys its sandboxes', async () => {
    await using app = await startControl(patient)
    await using runner = await connectRunner(app)
    const { sql } = app.database
    const [one, two] = await Promise.all(
      ['one', 'two'].map(async (name) => (await app.as('member').post('/sandbox', { name })).body.id as string),
    )
    await app.as('owner').post('/sandbox/two/stop')
    await untilState(app, two!, 'stopped')
    const kept = (await app.as('stranger').post('/sandbox', { name: 'one' })).body.id as string
    await app.as('owner').post('/snapshots', { name: 'tools', imageName: 'debian:13' })
    await sql`insert into regions (id, name, organization_id, region_type) values ('ours_1', 'cellar', ${ours}, 'custom')`
    await sql`insert into roles (id, organization_id, name, description, permissions)
              values ('r', ${ours}, 'r', 'r', '{write:sandboxes}')`

    const guest = { email: 'guest@example.com', role: 'member', assignedRoleIds: [] }
    assert.equal((await app.as('owner').post(`${path}/invitations`, guest)).status, 201)

    const reply = await app.as('owner').delete(path)
    assert.deepEqual([reply.status, reply.text], [204, ''])
    assert.deepEqual([...(await sql`select 1 from mail_outbox`)], [])
    for (const who of ['owner', 'member', 'viewer'] as const) {
      assert.equal((await app.as(who).get('/users/me')).status, 401, who)
    }
    const [image] = await sql`select wanted from images where source ->> 'kind' = 'registry'`
    assert.equal(image?.['wanted'], false)

    await app.sweep()
    await runner.untilAsked(({ sandboxId, target }) => sandboxId === one && target === 'destroyed')
    await runner.untilAsked(({ sandboxId, target }) => sandboxId === two && target === 'destroyed')
    await untilForgotten(app)
    assert.deepEqual([...runner.has.keys()], [kept])
    assert.equal((await app.as('stranger').get('/sandbox/one')).body.state, 'started')
    // The row in `deleted_organizations` with the organization's id exists for five minutes. All other rows of the
    // organization are deleted earlier.
    app.clock.advance({ minutes: 5 })
    await app.sweep()
    assert.deepEqual([...(await sql`select * from deleted_organizations`)], [])
  })

  test('rows of a deleted organization’s sandboxes stay until the runner connects and reports them gone', async () => {
    await using app = await startControl(patient)
    await using runner = await connectRunner(app)
    const { id } = (await app.as('member').post('/sandbox', {})).body
    await runner.cut()
    assert.equal((await app.as('owner').delete(path)).status, 204)
    app.clock.advance({ minutes: 10 })
    for (const _ of [1, 2, 3]) await app.sweep()
    const [row] = await app.database.sql`select desired_state, gone_at from sandboxes where id = ${id}`
    assert.deepEqual([row?.['desired_state'], row?.['gone_at']], ['destroyed', null])
    assert.ok(runner.has.has(id))
    await runner.link()
    await untilForgotten(app)
    assert.equal(runner.has.size, 0)
  })

  test('sandboxes that are created while their organization is deleted are destroyed; no call answers 500', async () => {
    await using app = await startControl(patient)
    await using runner = await connectRunner(app)
    const creates = Array.from({ length: 20 }, (_, n) => app.as('member').post('/sandbox', { name: `box-${n}` }))
    const others = [
      app.as('owner').post('/snapshots', { name: 'tools', imageName: 'debian:13' }),
      app.as('owner').post('/api-keys', { name: 'more', permissions: [] }),
      app.as('owner').post(`${path}/roles`, { name: 'r', description: 'r', permissions: ['write:sandboxes'] }),
    ]
    const deleted = app.as('owner').delete(path)
    const replies = await Promise.all([...creates, ...others])
    assert.equal((await deleted).status, 204)
    for (const { status, text } of replies) assert.ok(status < 500, `${status} ${text}`)
    await untilForgotten(app)
    assert.equal(runner.has.size, 0)
  })

  test('DELETE /organizations/{organizationId} succeeds, even if a deadlock aborts its first attempt', async () => {
    await using app = await startControl()
    const { sql } = app.database
    await app.as('owner').post('/snapshots', { name: 'tools', imageName: 'debian:13' })
    const waits = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    const deleted = await app.database.transaction(async (transaction) => {
      // PostgreSQL aborts the transaction that first checks for a deadlock. This transaction checks only after a minute, so
      // PostgreSQL aborts the delete.
      await transaction`set local deadlock_timeout = '1min'`
      await transaction`select 1 from images for update`
      const reply = app.as('owner').delete(path)
      while ((await sql.unsafe(waits)).length === 0);
      await transaction`select 1 from organizations where id = ${ours} for key share`
      return { reply }
    })
    assert.equal((await deleted.reply).status, 204)
  })

  test('if many callers delete an organization at the same time, one gets 204 and the others 401 or 404', async () => {
    await using app = await startControl()
    const replies = await Promise.all(Array.from({ length: 20 }, () => app.as('owner').delete(path)))
    const statuses = replies.map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 204).length, 1)
    assert.ok(
      statuses.every((status) => [204, 401, 404].includes(status)),
      String(statuses),
    )
  })

  test('DELETE /organizations/{organizationId} answers 403 for a personal organization and to members, 404 to strangers', async () => {
    await using app = await startControl()
    const { sql } = app.database
    const own = (await app.as('admin').get('/organizations')).body[0]
    assert.deepEqual([own.personal, (await app.as('admin').delete(`/organizations/${own.id}`)).status], [true, 403])
    for (const who of ['member', 'viewer'] as const) assert.equal((await app.as(who).delete(path)).status, 403)
    for (const id of [ours, 'no-such']) {
      assert.equal((await app.as('stranger').delete(`/organizations/${id}`)).status, 404)
    }
    assert.equal((await app.as('nobody').delete(path)).status, 401)
    // Makes control cache the caller as an owner. Then the role changes in the database, but not in the cache.
    assert.equal((await app.as('owner').get(path)).status, 200)
    await sql`update members set role = 'member' where organization_id = ${ours} and user_id = ${userId('owner')}`
    assert.equal((await app.as('owner').delete(path)).status, 403)
    assert.equal((await app.with(keys.stranger).get(`/organizations/${theirs}`)).status, 200)
  })

  test('a deleted organization’s name can be used again, and its creator may make another organization', async () => {
    await using app = await startControl()
    const make = () => app.as('viewer').post('/organizations', { name: 'x', defaultRegionId: 'local' })
    for (let n = 0; n < 10; n++) assert.equal((await make()).status, 201)
    assert.equal((await make()).status, 403)
    await app.database.sql`delete from organizations where id in (
      select id from organizations where created_by = ${userId('viewer')} limit 1)`
    assert.equal((await make()).status, 201)
  })
})
