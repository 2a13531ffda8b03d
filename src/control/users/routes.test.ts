import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'

suite('GET /users/me', () => {
  test('GET /users/me returns the key’s user, without the user’s role on this server', async () => {
    await using app = await startControl()
    const reply = await app.as('admin').get('/users/me')
    assert.equal(reply.status, 200)
    assert.deepEqual(Object.keys(reply.body).sort(), [
      'createdAt',
      'email',
      'emailVerified',
      'id',
      'name',
      'publicKeys',
    ])
    assert.deepEqual([reply.body.email, reply.body.emailVerified], ['admin@localhost', true])
  })

  test('GET /users/me answers 401 without a credential', async () => {
    await using app = await startControl()
    assert.equal((await app.as('nobody').get('/users/me')).status, 401)
  })
})
