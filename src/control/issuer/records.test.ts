import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { testSettings } from '#test/control/test-settings.ts'
import { recordsIn } from './records.ts'

suite('what the embedded issuer remembers', () => {
  test('has a bound for what is nobody’s yet: what was begun first gives way, and what is somebody’s never does', async () => {
    await using app = await startControl()
    const { database, encryption } = app.parts
    const records = recordsIn(database, encryption, 2)('Session')
    const found = async () => {
      const there = await Promise.all(['owned', 'first', 'second', 'third'].map((id) => records.find(id)))
      return there.map((record) => record !== undefined)
    }
    await records.upsert('owned', { accountId: 'ada' }, 5)
    await records.upsert('first', {}, 30)
    await records.upsert('second', {}, 60)
    await records.upsert('second', { uid: 'u' }, 60)
    assert.deepEqual(await found(), [true, true, true, false])
    await records.upsert('third', {}, 90)
    assert.deepEqual(await found(), [true, false, true, true])
    // One that was begun becomes somebody's.
    await records.upsert('second', { accountId: 'bob' }, 60)
    await records.upsert('first', {}, 120)
    assert.deepEqual(await found(), [true, true, true, true])
  })

  test('is short where it is nobody’s: a body may not say how long it is', async () => {
    await using app = await startControl()
    const records = recordsIn(app.parts.database, app.parts.encryption)('Interaction')
    const params = { state: 'x'.repeat(16 * 1024) }
    await assert.rejects(records.upsert('long', { params }, 60), { error: 'invalid_request' })
    assert.equal(await records.find('long'), undefined)
  })

  test('is as long as a client needs: a longer address is refused, and so is a longer body', async () => {
    await using app = await startControl({ settings: { identity: testSettings.identity } })
    const ask = async (url: string, bytes: number) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const { server } = app.app
      return (await server.inject({ method: 'POST', url, headers, payload: 'x'.repeat(bytes) })).statusCode
    }
    assert.equal(await ask('/oidc/device/auth', 4096), 400)
    assert.equal(await ask('/oidc/device/auth', 4097), 413)
    assert.equal(await ask(`/oidc/device/auth?state=${'x'.repeat(4096)}`, 1), 413)
  })
})
