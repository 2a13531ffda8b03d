import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { BrokenStream, Frames, frameOf, sendFrame } from './length-frames.ts'

const mostBytes = 4 * 1024 * 1024

const openPair = async () => {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const near = connect((server.address() as { port: number }).port, '127.0.0.1')
  const [far] = (await once(server, 'connection')) as [Socket]
  server.close()
  far.on('error', () => {})
  return {
    far,
    frames: new Frames(near, mostBytes),
    [Symbol.dispose]: () => {
      near.destroy()
      far.destroy()
    },
  }
}

suite('messages on a byte stream (`Frames`)', { timeout: 20_000 }, () => {
  test('a reader of messages with a length (`Frames`) returns whole messages, however their bytes arrive', async () => {
    using pair = await openPair()
    const message = Buffer.alloc(1_000_000, 'x')
    const frame = frameOf(message)
    for (const cuts of [[2], [4], [6], [2, 70_000], [500_000]]) {
      const reading = pair.frames.next()
      let from = 0
      for (const cut of [...cuts, frame.length]) {
        await sendFrame(pair.far, frame.subarray(from, cut))
        await delay(20)
        from = cut
      }
      assert.ok((await reading)?.equals(message), String(cuts))
    }
  })

  test('a reader of messages with a length (`Frames`) throws for an incomplete or too long message', async () => {
    {
      using pair = await openPair()
      pair.far.end(frameOf(Buffer.from('last')))
      assert.equal(String(await pair.frames.next()), 'last')
      assert.equal(await pair.frames.next(), undefined)
    }
    for (const cut of [2, 6]) {
      using pair = await openPair()
      pair.far.end(frameOf(Buffer.from('never')).subarray(0, cut))
      await assert.rejects(pair.frames.next(), BrokenStream)
    }
    using pair = await openPair()
    pair.far.write(frameOf(Buffer.alloc(mostBytes + 1)).subarray(0, 100))
    await assert.rejects(pair.frames.next(), BrokenStream)
  })
})
