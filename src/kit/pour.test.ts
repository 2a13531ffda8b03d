import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { PassThrough, Readable, Writable } from 'node:stream'
import { suite, test } from 'node:test'
import { giveBack, pour } from './pour.ts'

/** Opens a connection. Returns its two ends, and a function that closes both. */
const openPair = async (): Promise<[Socket, Socket, () => void]> => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const near = connect((server.address() as { port: number }).port, '127.0.0.1')
  const [far] = (await once(server, 'connection')) as [Socket]
  const close = () => {
    for (const end of [near, far]) end.destroy()
    server.close()
  }
  return [near, far, close]
}

suite('freeing memory of buffers (`giveBack`)', () => {
  test('`giveBack` frees the memory of a large buffer if no other buffer uses that memory', () => {
    const bytes = Buffer.allocUnsafeSlow(65_536)
    giveBack(bytes)
    assert.equal(bytes.length, 0)
  })

  test('`giveBack` does not free small buffers, parts of a buffer, or memory that other buffers share', () => {
    const whole = Buffer.alloc(65_536, 1)
    giveBack(whole.subarray(1))
    giveBack(whole.subarray(0, 40_000))
    const shared = new Uint8Array(new SharedArrayBuffer(65_536))
    giveBack(shared)
    const small = Buffer.from('small')
    giveBack(small)
    assert.deepEqual([whole.length, whole[40_000], shared.length, small.length], [65_536, 1, 65_536, 5])
  })
})

suite('copying from stream to stream (`pour`)', () => {
  test('`pour` passes on every byte of a stream in order to a target stream, and then ends the target', async () => {
    const [giving, from, closeOne] = await openPair()
    const [to, taking, closeOther] = await openPair()
    pour(from, to)
    const sent = Buffer.allocUnsafeSlow(20 * 1024 * 1024 + 7)
    for (let at = 0; at + 4 <= sent.length; at += 4) sent.writeUInt32LE(at, at)
    giving.end(sent)
    const pieces = await taking.toArray()
    assert.ok(Buffer.concat(pieces).equals(sent))
    closeOne()
    closeOther()
  })

  test('`pour` reads a stream no faster than its target stream accepts bytes, and frees the written bytes', async () => {
    const from = new PassThrough()
    const pieces = Array.from({ length: 8 }, () => Buffer.allocUnsafeSlow(65_536))
    const waiting: (() => void)[] = []
    const to = new Writable({ highWaterMark: 1, write: (_bytes, _encoding, done) => void waiting.push(done) })
    const finished = once(to, 'finish')
    pour(from, to)
    for (const piece of pieces) from.write(piece)
    from.end()
    for (let written = 0; written < pieces.length; written++) {
      while (waiting.length === 0) await new Promise(setImmediate)
      assert.equal(to.writableLength, 65_536, 'one piece waits, and no second')
      assert.equal(pieces[written]!.length, 65_536, 'not yet written')
      waiting.shift()!()
      await new Promise(setImmediate)
      assert.equal(pieces[written]!.length, 0)
    }
    await finished
  })

  test('`pour` joins small pieces of a stream that arrive in one event loop turn, and keeps their order', async () => {
    const from = new Readable({ read: () => {} })
    const written: string[] = []
    const to = new Writable({
      write: (bytes, _encoding, done) => {
        written.push(String(bytes))
        done()
      },
    })
    pour(from, to)
    await new Promise(setImmediate)
    const large = 'L'.repeat(5000)
    for (const piece of ['a', 'b', 'c', large, 'd', 'e']) from.push(piece)
    await new Promise(setImmediate)
    for (const piece of ['f', null]) from.push(piece)
    await once(to, 'finish')
    assert.deepEqual(written, ['abc', large, 'de', 'f'])
  })

  test('`pour` stops copying a stream when the target stream closes or when its stop function is called', async () => {
    for (const stopping of ['close', 'stop'] as const) {
      const from = new PassThrough()
      const to = new PassThrough()
      const stop = pour(from, to)
      if (stopping === 'close') {
        to.destroy()
        await once(to, 'close')
      } else stop()
      from.write('more')
      await new Promise(setImmediate)
      assert.deepEqual([from.isPaused(), from.readableLength, to.readableLength], [true, 4, 0])
    }
  })

  test('if a copy with `pour` is stopped twice, the second stop does not pause the stream for a new reader', async () => {
    const from = new PassThrough()
    const to = new PassThrough()
    const stop = pour(from, to)
    to.once('close', () => {
      stop()
      from.resume()
    })
    stop()
    from.resume()
    to.destroy()
    await once(to, 'close')
    stop()
    assert.equal(from.isPaused(), false)
  })
})
