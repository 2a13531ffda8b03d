import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { testSettings } from '#test/control/test-settings.ts'
import { beginFrom } from './record-source.ts'
import { recordsIn } from './records.ts'

suite('the stored records of the embedded issuer', () => {
  test('if too many sign-in records have no account, the oldest of these is deleted; other records stay', async () => {
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
    // Writes an account into the record "second", as happens when the user signs in.
    await records.upsert('second', { accountId: 'bob' }, 60)
    await records.upsert('first', {}, 120)
    assert.deepEqual(await found(), [true, true, true, true])
  })

  test('if too many sign-in records have no account, the network with most of them loses its oldest record', async () => {
    await using app = await startControl()
    const { database, encryption } = app.parts
    const records = recordsIn(database, encryption, 5)('Session')
    const begin = (id: string, address: string, seconds: number) =>
      beginFrom(address, () => records.upsert(id, {}, seconds))
    await begin('victim', '192.0.2.1', 10)
    // For this limit, a whole IPv6 /48 is one network, because a subscriber often has a whole /48.
    for (let n = 1; n <= 12; n += 1) await begin(`attacker ${n}`, `2001:db8:1:${n}::1`, 10 + n)
    await begin('newcomer', '2001:db8:2::1', 5)
    const there = await Promise.all(
      ['victim', 'newcomer', 'attacker 1', 'attacker 12'].map(async (id) => (await records.find(id)) !== undefined),
    )
    assert.deepEqual(there, [true, true, false, true])
    const [row] = await database.sql`select count(*)::integer as count from issuer_records`
    assert.equal(row?.['count'], 5)
  })

  test('a begun sign-in is stored with the client’s IP address, not with a trusted proxy’s address', async () => {
    await using app = await startControl({ settings: { identity: testSettings.identity } })
    const { server } = app.app
    await server.inject({ method: 'GET', url: '/oidc/device', remoteAddress: '198.51.100.7' })
    const rows = await app.database.sql`select distinct source from issuer_records`
    assert.deepEqual([...rows], [{ source: '198.51.100.7' }])
  })

  test('a new sign-in is refused if the data that control must store for it is larger than the limit', async () => {
    await using app = await startControl()
    const records = recordsIn(app.parts.database, app.parts.encryption)('Interaction')
    const params = { state: 'x'.repeat(16 * 1024) }
    await assert.rejects(records.upsert('long', { params }, 60), { error: 'invalid_request' })
    assert.equal(await records.find('long'), undefined)
  })

  test('the issuer accepts URLs and bodies of the length that clients need, and refuses longer ones', async () => {
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
