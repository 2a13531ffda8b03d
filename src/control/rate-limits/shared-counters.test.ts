import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createApp } from '#src/control/app.ts'
import { openDatabase } from '#src/control/storage/database.ts'
import { silentLog } from '#src/kit/log.ts'
import { startControl } from '#test/control/harness.ts'
import { openTestDatabase } from '#test/control/test-database.ts'
import { testEncryption } from '#test/control/test-settings.ts'
import { type SharedCounter, SharedCounters } from './shared-counters.ts'

const untilCount = async (counter: SharedCounter, key: string, points: number): Promise<void> => {
  const end = performance.now() + 10_000
  for (;;) {
    const counted = (await counter.get(key))?.consumedPoints ?? 0
    if (counted === points) return
    assert.ok(performance.now() < end, `${counted} points, not ${points}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

suite('counters of several control processes', () => {
  test('if one control process adds to a shared counter or subtracts from it, all processes do the same', async () => {
    await using opened = await openTestDatabase('empty')
    const databases = [openDatabase(opened.url), openDatabase(opened.url)]
    const all = databases.map((database) =>
      SharedCounters.of({ database, log: silentLog(), encryption: testEncryption }),
    )
    try {
      for (const each of all) await each.join()
      const [one, other] = all.map((each) => each.counter('failures', 60)) as [SharedCounter, SharedCounter]
      for (let count = 0; count < 5; count += 1) await one.add('key')
      await other.add('key')
      await other.add('another key')
      await untilCount(one, 'key', 6)
      await untilCount(other, 'key', 6)
      await untilCount(one, 'another key', 1)
      await one.giveBack('key')
      await untilCount(other, 'key', 5)
      assert.deepEqual(all[0]?.secret, all[1]?.secret)
    } finally {
      for (const each of all) each.close()
      for (const database of databases) await database.close()
    }
  })

  test('if calls to one control process have reached a rate limit, other control processes refuse calls too', async () => {
    const rateLimits = { anonymous: { limit: 5, ttlSeconds: 60 } }
    await using app = await startControl({ settings: { rateLimits } })
    const database = openDatabase(app.url)
    const other = await createApp({ ...app.parts, database }, { sweepSeconds: 0, mostWarm: 0 })
    try {
      for (let call = 0; call < 5; call += 1) assert.equal((await app.as('nobody').get('/config')).status, 200)
      const end = performance.now() + 10_000
      const ask = async () => (await other.server.inject({ method: 'GET', url: '/api/config' })).statusCode
      while ((await ask()) !== 429) assert.ok(performance.now() < end, 'the other process lets in all calls')
      assert.equal((await app.as('nobody').get('/config')).status, 429)
    } finally {
      await other.close()
      await database.close()
    }
  })
})
