import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { openTestDatabase } from '#test/control/test-database.ts'
import { type Database, openDatabase } from './database.ts'
import { Peers } from './peers.ts'

type News = { n: number; text?: string }

/**
 * Opens `Peers` once more in this test's process, with its own connections and memory, as another control process
 * would.
 */
const openPeer = async (url: string) => {
  const database = openDatabase(url, { max: 1 })
  const heard: News[] = []
  const onNews = (news: News) => heard.push(news)
  const peers = await Peers.open<News>({ database, channel: 'news', log: silentLog(), onNews })
  return {
    database,
    peers,
    heard,
    until: async (count: number) => {
      for (const end = Date.now() + 20_000; heard.length < count && Date.now() < end; )
        await new Promise((resolve) => setTimeout(resolve, 5))
      return heard.map(({ n }) => n)
    },
    [Symbol.asyncDispose]: async () => {
      peers.close()
      await database.close()
    },
  }
}

/** Listens on the PostgreSQL channel `news`. Returns an array that collects all messages of this channel. */
const listenIn = async (database: Database) => {
  const said: { from: string; news: News[] }[] = []
  await database.listen('news', (text) => said.push(JSON.parse(text)))
  return said
}

suite('messages between control processes', () => {
  test('control processes receive each other’s messages once and in order, however many and long they are', async () => {
    await using opened = await openTestDatabase('empty')
    await using one = await openPeer(opened.url)
    await using other = await openPeer(opened.url)
    await using third = await openPeer(opened.url)
    const count = 500
    for (let n = 0; n < count; n++) one.peers.tell({ n, text: 'ü'.repeat((n * 37) % 3000) })
    const all = Array.from({ length: count }, (_, n) => n)
    assert.deepEqual(await other.until(count), all)
    assert.deepEqual(await third.until(count), all)
    assert.deepEqual(one.heard, [])
  })

  test('a control process receives messages of control processes that started before or after it', async () => {
    await using opened = await openTestDatabase('empty')
    await using elder = await openPeer(opened.url)
    await using younger = await openPeer(opened.url)
    younger.peers.tell({ n: 1 })
    assert.deepEqual(await elder.until(1), [1])
    elder.peers.tell({ n: 2 })
    assert.deepEqual(await younger.until(1), [2])
  })

  test('a control process sends no messages while no other control process exists', async (t) => {
    await using opened = await openTestDatabase('empty')
    t.mock.timers.enable({ apis: ['setInterval'] })
    let now = performance.now()
    t.mock.method(performance, 'now', () => now)
    await using alone = await openPeer(opened.url)
    const said = await listenIn(opened.database)
    now += 60_000
    alone.peers.tell({ n: 1 })
    // Makes the process send its regular hello message. Earlier news would arrive first, because news and hello messages use one
    // connection.
    t.mock.timers.tick(10_000)
    for (const end = Date.now() + 20_000; said.length === 0 && Date.now() < end; )
      await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(
      said.map(({ news }) => news),
      [[]],
    )
    // Starts a second process, which sends a hello message. From then on, the first process sends its news to the
    // second.
    t.mock.timers.reset()
    await using late = await openPeer(opened.url)
    for (const end = Date.now() + 20_000; late.heard.length === 0 && Date.now() < end; ) {
      alone.peers.tell({ n: 2 })
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    assert.equal(late.heard[0]?.n, 2)
  })

  test('control processes receive each other’s messages again after their database connections were cut', async () => {
    await using opened = await openTestDatabase('empty')
    await using one = await openPeer(opened.url)
    await using other = await openPeer(opened.url)
    await opened.database.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`
    for (const end = Date.now() + 20_000; other.heard.length === 0 && Date.now() < end; ) {
      one.peers.tell({ n: 1 })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    assert.equal(other.heard[0]?.n, 1)
  })

  test('a control process ignores malformed messages on its PostgreSQL channel', async () => {
    await using opened = await openTestDatabase('empty')
    await using one = await openPeer(opened.url)
    await using other = await openPeer(opened.url)
    for (const text of ['', 'x', '{}', '{"from":1,"news":[]}', '{"from":"x","news":{}}'])
      await opened.database.sql`select pg_notify('news', ${text})`
    one.peers.tell({ n: 1 })
    assert.deepEqual(await other.until(1), [1])
  })
})
