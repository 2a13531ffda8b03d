import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addPerson } from '#test/control/add-person.ts'
import { startControl } from '#test/control/harness.ts'
import { organizations, userId } from '#test/control/people.ts'

const wish = { name: 'Second', defaultRegionId: 'local' }

suite('POST /organizations', () => {
  test('POST /organizations makes an organization in a shared region, with the caller as owner', async () => {
    await using app = await startControl()
    const reply = await app.as('viewer').post('/organizations', { ...wish, name: '  Zwölf & Söhne  ' })
    assert.equal(reply.status, 201)
    const { id, name, createdBy, personal, defaultRegionId, suspended, otelConfig } = reply.body
    assert.deepEqual(
      { name, createdBy, personal, defaultRegionId, suspended, otelConfig },
      {
        name: 'Zwölf & Söhne',
        createdBy: userId('viewer'),
        personal: false,
        defaultRegionId: 'local',
        suspended: false,
        otelConfig: null,
      },
    )
    const members = await app.database.sql`select user_id, role from members where organization_id = ${id}`
    assert.deepEqual([...members], [{ user_id: userId('viewer'), role: 'owner' }])
  })

  test('POST /organizations accepts a name that another organization has', async () => {
    await using app = await startControl()
    const replies = await Promise.all([1, 2].map(() => app.as('owner').post('/organizations', wish)))
    assert.deepEqual(
      replies.map(({ status }) => status),
      [201, 201],
    )
    assert.notEqual(replies[0]?.body.id, replies[1]?.body.id)
  })

  test('POST /organizations answers 400 for an invalid field, and names the field', async () => {
    await using app = await startControl()
    const bodies = [
      {},
      [],
      { name: 'x' },
      { defaultRegionId: 'local' },
      { ...wish, name: '' },
      { ...wish, name: ' \n ' },
      { ...wish, name: 5 },
      { ...wish, name: null },
      { ...wish, name: 'a\u0000b' },
      { ...wish, name: 'a\u0007b' },
      { ...wish, name: '<b>bold</b>' },
      { ...wish, name: 'see https://evil.example' },
      { ...wish, name: 'www.evil.example' },
      { ...wish, name: 'x'.repeat(256) },
      { ...wish, defaultRegionId: null },
    ]
    for (const body of bodies) {
      const reply = await app.as('owner').post('/organizations', body)
      assert.equal(reply.status, 400, JSON.stringify(body))
    }
  })

  test('POST /organizations answers 404 for a region that is unknown or not shared', async () => {
    await using app = await startControl()
    await app.database.sql`
      insert into regions (id, name, organization_id, region_type) values
        ('ours_1', 'cellar', ${organizations.ours}, 'custom'), ('gold', 'gold', null, 'dedicated')`
    for (const defaultRegionId of ['no-such', '', 'ours_1', 'gold', 'LOCAL']) {
      const reply = await app.as('owner').post('/organizations', { ...wish, defaultRegionId })
      assert.equal(reply.status, 404, defaultRegionId)
    }
  })

  test('POST /organizations answers 403 if the caller’s e-mail address is unverified, or verified only by SSO', async () => {
    await using app = await startControl()
    for (const how of [{ emailVerified: false }, { emailVerifiedBy: 'sso' }] as const) {
      const { key } = await addPerson(app, { role: 'owner', ...how })
      assert.equal((await app.with(key).post('/organizations', wish)).status, 403)
    }
  })

  test('POST /organizations answers 403 to a key with fewer permissions than its user, and makes no organization', async () => {
    await using app = await startControl()
    const narrow = await addPerson(app, { role: 'owner', permissions: [] })
    assert.equal((await app.with(narrow.key).post('/organizations', wish)).status, 403)
    const made = await app.database.sql`select 1 from organizations where created_by = ${narrow.id}`
    assert.equal(made.length, 0)
  })

  test('POST /organizations answers 403 for a user’s eleventh organization, even with many calls at the same time', async () => {
    await using app = await startControl()
    await app.database.sql`delete from organizations where created_by = ${userId('viewer')}`
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, n) => app.as('viewer').post('/organizations', { ...wish, name: `number ${n}` })),
    )
    const count = (status: number) => replies.filter((reply) => reply.status === status).length
    assert.deepEqual([count(201), count(403)], [10, 40])
    const [made] = await app.database.sql`
      select count(*) from organizations where created_by = ${userId('viewer')} and not personal`
    assert.equal(made?.['count'], 10)
    assert.equal((await app.as('member').post('/organizations', wish)).status, 201)
  })
})
