import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { testSettings } from '#test/control/test-settings.ts'
import { recordsIn } from './records.ts'

suite('what the embedded issuer remembers', () => {
  test('has a bound for what is nobody’s yet: who is signing in, or is signed in, goes on', async () => {
    await using app = await startControl()
    const { database, encryption } = app.parts
    const records = recordsIn(database, encryption, 2)('Session')
    for (const id of ['first', 'second']) await records.upsert(id, {}, 60)
    await assert.rejects(records.upsert('third', {}, 60), { error: 'temporarily_unavailable' })
    await records.upsert('second', { uid: 'u' }, 60)
    await records.upsert('fourth', { accountId: 'ada' }, 60)
    assert.deepEqual([await records.find('third'), (await records.find('fourth'))?.accountId], [undefined, 'ada'])
    // One that was begun becomes somebody's.
    await records.upsert('first', { accountId: 'bob' }, 60)
    await records.upsert('third', {}, 60)
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
