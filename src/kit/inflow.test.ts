import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { Writable } from 'node:stream'
import { suite, test } from 'node:test'
import { Inflow, writeThrough } from './inflow.ts'

const openPair = async (): Promise<{ near: Inflow; far: Socket } & Disposable> => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const near = Inflow.to({ port: (server.address() as { port: number }).port, host: '127.0.0.1' })
  const [far] = (await once(server, 'connection')) as [Socket]
  const close = () => {
    for (const end of [near, far]) end.destroy()
    server.close()
  }
  return { near, far, [Symbol.dispose]: close }
}

/** Makes bytes that differ at every position, so that a wrong order is found. */
const counting = (words: number): Buffer => Buffer.from(Uint32Array.from({ length: words }, (_, at) => at).buffer)

suite('Inflow, a socket that reads into one buffer again and again', () => {
  test('listeners of an Inflow socket get the usual stream events, and may keep the bytes that they get', async () => {
    using pair = await openPair()
    const sent = counting(1_000_000)
    pair.far.end(sent)
    assert.ok(Buffer.concat(await pair.near.toArray()).equals(sent))
  })

  test('after `hearOut`, an Inflow socket reads an answer that came before the server reset the connection', async () => {
    using pair = await openPair()
    pair.near.hearOut().pause()
    pair.far.write('too much')
    await once(pair.near, 'readable')
    pair.far.resetAndDestroy()
    await once(pair.far, 'close')
    for (let i = 0; i < 10; i++) await new Promise<void>((done) => pair.near.write('more', () => done()))
    assert.equal(String(pair.near.read()), 'too much')
  })

  test('the function given to `takeOver` gets all unread bytes, which stay unchanged while it uses them', async () => {
    using pair = await openPair()
    const sent = counting(2_000_000)
    pair.far.write(sent.subarray(0, 100_000))
    await once(pair.near, 'readable')
    const head = pair.near.read(10) as Buffer
    pair.far.end(sent.subarray(100_000))
    const pieces = [head]
    let isHeld = false
    pair.near.takeOver((bytes) => {
      assert.ok(!isHeld, 'nothing comes while a piece is held')
      isHeld = true
      setImmediate(() => {
        pieces.push(Buffer.from(bytes))
        isHeld = false
        pair.near.resume()
      })
      return false
    })
    await once(pair.near, 'end')
    assert.ok(Buffer.concat(pieces).equals(sent))
  })

  test('a slow listener of an Inflow socket gets small pieces, and other work runs between two pieces', async () => {
    using pair = await openPair()
    const sent = counting(100_000)
    const pieces: Buffer[] = []
    const turns: number[] = []
    let turn = 0
    let isOver = false
    const count = () => {
      turn += 1
      if (!isOver) setImmediate(count)
    }
    count()
    pair.near.on('data', (piece: Buffer) => {
      const until = performance.now() + 3
      while (performance.now() < until);
      pieces.push(piece)
      turns.push(turn)
    })
    pair.far.end(sent)
    await once(pair.near, 'end').finally(() => {
      isOver = true
    })
    assert.ok(Buffer.concat(pieces).equals(sent))
    assert.ok(pieces.every(({ length }) => length <= 16 * 1024))
    assert.equal(new Set(turns).size, turns.length)
  })

  test('a slow reader that reads an Inflow socket with `read` gets all bytes', async (t) => {
    using pair = await openPair()
    let now = 0
    t.mock.method(performance, 'now', () => {
      now += 3
      return now
    })
    const sent = counting(20_000)
    pair.far.end(sent)
    assert.ok(Buffer.concat(await pair.near.toArray()).equals(sent))
  })

  test('an Inflow socket reads more bytes at a time if its consumer is fast, and fewer after small reads', async () => {
    using pair = await openPair()
    const roomFor: number[] = []
    let bytesTaken = 0
    let wake = () => {}
    pair.near.takeOver((bytes) => {
      roomFor.push(bytes.buffer.byteLength)
      bytesTaken += bytes.length
      wake()
      return true
    })
    const send = async (bytes: Buffer) => {
      const expected = bytesTaken + bytes.length
      pair.far.write(bytes)
      while (bytesTaken < expected) {
        const more = Promise.withResolvers<void>()
        wake = more.resolve
        await more.promise
      }
    }
    const small = 17 * 1024
    await send(Buffer.alloc(8_000_000))
    assert.ok(Math.max(...roomFor) > 256 * 1024, String(roomFor))
    for (let i = 0; i < 10; i++) await send(Buffer.from('little'))
    assert.ok(roomFor.at(-1)! < small)
  })

  test('200 Inflow sockets whose consumers have stopped reading take less than 12 MB of memory in total', async () => {
    const pairs = await Promise.all(Array.from({ length: 200 }, openPair))
    try {
      const held = pairs.map(({ near, far }) => {
        let left = 500_000
        const stopped = Promise.withResolvers<Buffer>()
        near.takeOver((bytes) => {
          left -= bytes.length
          if (left > 0) return true
          stopped.resolve(bytes)
          return false
        })
        far.write(Buffer.alloc(1_000_000))
        return stopped.promise
      })
      const bytes = (await Promise.all(held)).reduce((sum, { buffer }) => sum + buffer.byteLength, 0)
      assert.ok(bytes < 12_000_000, String(bytes))
    } finally {
      for (const pair of pairs) pair[Symbol.dispose]()
    }
    // After the 200 connections are closed, the memory of their buffers is free: a new connection gets a large buffer.
    using pair = await openPair()
    const large = Promise.withResolvers<void>()
    pair.near.takeOver(({ buffer }) => {
      if (buffer.byteLength > 256 * 1024) large.resolve()
      return true
    })
    pair.far.write(Buffer.alloc(8_000_000))
    await large.promise
  })

  test('the receiver of an Inflow socket’s bytes may put a header of a few bytes directly before them', async () => {
    using pair = await openPair()
    pair.far.end('text')
    const taken = Promise.withResolvers<string>()
    pair.near.takeOver((bytes) => {
      const whole = Buffer.from(bytes.buffer, bytes.byteOffset - 3, bytes.length + 3)
      whole.write('>> ')
      taken.resolve(whole.toString())
      return true
    })
    assert.equal(await taken.promise, '>> text')
  })
})

suite('writing bytes whose memory is used again (`writeThrough`)', () => {
  test('`writeThrough` returns true if it can write its bytes immediately, and otherwise calls `next` later', () => {
    const waiting: (() => void)[] = []
    let isSlow = false
    const to = new Writable({ write: (_bytes, _encoding, done) => (isSlow ? void waiting.push(done) : done()) })
    let told = 0
    const next = () => {
      told += 1
    }
    assert.equal(writeThrough(to, Buffer.from('one'), next), true)
    isSlow = true
    assert.equal(writeThrough(to, Buffer.from('two'), next), false)
    assert.equal(told, 0)
    waiting.shift()?.()
    assert.equal(to.writableLength, 0)
    return new Promise<void>((resolve) => setImmediate(resolve)).then(() => assert.equal(told, 1))
  })
})
