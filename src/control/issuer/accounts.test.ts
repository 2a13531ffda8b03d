import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addPerson } from '#test/control/add-person.ts'
import { startControl } from '#test/control/harness.ts'
import { testSettings } from '#test/control/test-settings.ts'
import type { Sql } from '../storage/database.ts'
import { findAccount, signsInTo } from './passwords.ts'

const findByPassword = async (sql: Sql, email: string, password: string) =>
  await signsInTo(await findAccount(sql, email), password, 'other')

const start = () => startControl({ settings: { identity: testSettings.identity } })

suite('POST /admin/users', () => {
  test('POST /admin/users makes a user with a personal organization, who can sign in after POST /admin/users/password', async () => {
    await using app = await start()
    const made = await app.as('admin').post('/admin/users', { email: 'ada@example.com', name: 'Ada' })
    assert.deepEqual([made.status, made.body.email, made.body.name], [201, 'ada@example.com', 'Ada'])
    const [owned] = await app.database.sql`
      select o.name, o.personal, m.role from organizations o join members m on m.organization_id = o.id
      where m.user_id = ${made.body.id}`
    assert.deepEqual({ ...owned }, { name: 'Personal', personal: true, role: 'owner' })
    const given = await app.as('admin').post('/admin/users/password', { email: 'ADA@example.com' })
    assert.equal(given.status, 200)
    const { sql } = app.database
    assert.equal(await findByPassword(sql, 'ada@example.com', given.body.password), made.body.id)
    const own = { email: 'ada@example.com', password: 'twelve letters at least' }
    assert.equal((await app.as('admin').post('/admin/users/password', own)).status, 200)
    assert.equal(await findByPassword(sql, 'ada@example.com', given.body.password), undefined)
    assert.equal(await findByPassword(sql, 'ada@example.com', own.password), made.body.id)
  })

  test('POST /admin/users answers 400 for a bad e-mail address, 409 for an address in use, 403 to users who are not operators', async () => {
    await using app = await start()
    const admin = app.as('admin')
    for (const email of ['', 'ada', 'a b@example.com', 'a\u0000@example.com', `${'a'.repeat(300)}@example.com`]) {
      assert.equal((await admin.post('/admin/users', { email })).status, 400, email)
    }
    assert.equal((await admin.post('/admin/users', { email: 'b@example.com', name: '<b>' })).status, 400)
    assert.equal((await admin.post('/admin/users', { email: 'OWNER@example.com' })).status, 409)
    const password = (given: object) => admin.post('/admin/users/password', given)
    assert.equal((await password({ email: 'no@example.com' })).status, 404)
    for (const text of ['short', '', 'x'.repeat(257), `${'x'.repeat(20)}\u0000`]) {
      assert.equal((await password({ email: 'owner@example.com', password: text })).status, 400)
    }
    assert.equal((await app.as('owner').post('/admin/users', { email: 'c@example.com' })).status, 403)
    assert.equal((await app.as('owner').post('/admin/users/password', { email: 'owner@example.com' })).status, 403)
  })

  test('POST /admin/users accepts an e-mail address of another account if only single sign-on has verified it', async () => {
    await using app = await start()
    const squatter = await addPerson(app, { email: 'ada@example.com', emailVerifiedBy: 'sso' })
    const wish = { email: 'ADA@example.com' }
    assert.equal((await app.as('admin').post('/admin/users/password', wish)).status, 409)
    const made = await app.as('admin').post('/admin/users', wish)
    assert.equal(made.status, 201)
    assert.notEqual(made.body.id, squatter.id)
    const given = await app.as('admin').post('/admin/users/password', wish)
    assert.equal(await findByPassword(app.database.sql, 'ada@example.com', given.body.password), made.body.id)
    const { id, email, emailVerified } = (await app.with(squatter.key).get('/users/me')).body
    assert.deepEqual([id, email.endsWith('@sso.invalid'), emailVerified], [squatter.id, true, false])
  })

  test('POST /admin/users, POST /admin/users/password answer 409 if the operator uses another issuer', async () => {
    await using app = await startControl()
    assert.equal((await app.as('admin').post('/admin/users', { email: 'ada@example.com' })).status, 409)
    assert.equal((await app.as('admin').post('/admin/users/password', { email: 'owner@example.com' })).status, 409)
  })
})
