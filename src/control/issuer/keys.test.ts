import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { systemClock } from '#src/kit/clock.ts'
import { silentLog } from '#src/kit/log.ts'
import { openTestDatabase } from '#test/control/test-database.ts'
import { createEncryption, newEncryptionKey, readEncryptionKey } from '../storage/encryption.ts'
import { ensureKeys } from './keys.ts'

const newEncryption = () => createEncryption([readEncryptionKey(newEncryptionKey())!])

suite('the keys of our own issuer', () => {
  test('the issuer has the same keys after each start of control, but new keys under another encryption key', async () => {
    await using opened = await openTestDatabase()
    const partsWith = (encryption = newEncryption()) => ({
      ...{ database: opened.database, clock: systemClock, log: silentLog(), encryption },
    })
    const [right, wrong] = [partsWith(), partsWith()]
    const first = await ensureKeys(right)
    assert.equal(first.signing.length, 1)
    assert.deepEqual(await ensureKeys(right), first)
    const second = await ensureKeys(wrong)
    assert.deepEqual([second.signing.length, second.signing[0]?.kid === first.signing[0]?.kid], [1, false])
    assert.notEqual(second.cookie, first.cookie)
    assert.deepEqual(await ensureKeys(wrong), second)
    assert.deepEqual(await ensureKeys(right), first)
  })
})
