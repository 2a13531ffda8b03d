import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { BrokenStream, ByteReader } from './byte-reader.ts'

const openPair = async () => {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const near = connect((server.address() as { port: number }).port, '127.0.0.1')
  const [far] = (await once(server, 'connection')) as [Socket]
  server.close()
  for (const socket of [near, far]) socket.on('error', () => {})
  return {
    near,
    far,
    [Symbol.dispose]: () => {
      near.destroy()
      far.destroy()
    },
  }
}

suite('a reader of bytes', { timeout: 20_000 }, () => {
  test('`ByteReader` waits until all requested bytes of a stream have come, without blocking the event loop', async () => {
    using pair = await openPair()
    const bytes = new ByteReader(pair.near)
    const five = bytes.exactly(5)
    pair.far.write('he')
    let turns = 0
    for (; turns < 20; turns++) await delay(1)
    pair.far.write('llo, world')
    assert.equal(String(await five), 'hello')
    assert.equal(String(await bytes.some()), ', world')
    assert.equal(turns, 20)
  })

  test('`ByteReader` returns undefined at the end of the stream, and throws if only a part of the bytes came', async () => {
    using pair = await openPair()
    const bytes = new ByteReader(pair.near)
    pair.far.end('hello')
    assert.equal(String(await bytes.exactly(3)), 'hel')
    assert.equal(String(await bytes.exactly(0)), '')
    await assert.rejects(bytes.exactly(3), BrokenStream)
    using empty = await openPair()
    empty.far.end()
    assert.equal(await new ByteReader(empty.near).exactly(3), undefined)
    assert.equal(await new ByteReader(empty.near).some(), undefined)
  })

  test('`ByteReader` throws an error with the cause if its connection fails during a read', async () => {
    using pair = await openPair()
    const waiting = new ByteReader(pair.near).exactly(3)
    pair.near.destroy(new Error('given up'))
    await assert.rejects(waiting, { name: 'BrokenStream', cause: new Error('given up') })
  })

  test('after `ByteReader` is released, the next reader of the stream gets the remaining bytes', async () => {
    using pair = await openPair()
    const before = pair.near.eventNames().map((name) => [name, pair.near.listenerCount(name)])
    const bytes = new ByteReader(pair.near)
    pair.far.end('headrest')
    assert.equal(String(await bytes.exactly(4)), 'head')
    bytes.release()
    assert.deepEqual(
      pair.near.eventNames().map((name) => [name, pair.near.listenerCount(name)]),
      before,
    )
    const rest = await pair.near.setEncoding('utf8').toArray()
    assert.equal(rest.join(''), 'rest')
  })
})
