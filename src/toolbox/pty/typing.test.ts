import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { suite, test } from 'node:test'
import type { WebSocket } from 'ws'
import { Budget } from '#src/kit/budget.ts'
import { AgentGone, AgentRefused, type Jobs } from '../agent/agent.ts'
import { Typing } from './typing.ts'

/** Starts a client, and a terminal that accepts input only when the test lets it. */
const start = (bound?: Budget, sandboxId = 'box') => {
  let closed: number | undefined
  const socket = Object.assign(new EventEmitter(), {
    isPaused: false,
    OPEN: 1,
    readyState: 1,
    close: (code: number) => {
      closed = code
    },
    pause: () => {
      socket.isPaused = true
    },
    resume: () => {
      socket.isPaused = false
    },
  })
  const sent: PromiseWithResolvers<void>[] = []
  let bytes = 0
  const input: Jobs['input'] = (_id, data) => {
    bytes += data.length
    const sending = Promise.withResolvers<void>()
    sent.push(sending)
    return sending.promise
  }
  const typing = new Typing(socket as unknown as WebSocket, sandboxId, bound)
  const find = () => typing.into({ input } as Jobs, 'shell')
  const type = (data: Buffer, most: number) => {
    let frames = 0
    for (; frames < most && !socket.isPaused; frames++) socket.emit('message', data)
    return frames
  }
  const takeAll = async () => {
    while (sent.length > 0) {
      sent.shift()?.resolve()
      await new Promise(setImmediate)
    }
    return bytes
  }
  const fail = async (error: Error) => {
    sent.shift()?.reject(error)
    await new Promise(setImmediate)
  }
  return { type, takeAll, fail, socket, find, end: () => typing.end(), closed: () => closed }
}

suite('typing into a terminal that accepts nothing', () => {
  test('a terminal client is paused after more than 1 MB of typed input, in one frame or in thousands', async () => {
    for (const [size, most] of [
      [1024 * 1024, 1],
      [1024, 1024],
      [1, 8 * 1024],
    ] as const) {
      const { type, takeAll, socket, find } = start()
      find()
      const frames = type(Buffer.alloc(size), 1_000_000)
      assert.ok(frames <= most, `${frames} frames of ${size}`)
      assert.equal(await takeAll(), frames * size)
      assert.equal(socket.isPaused, false)
      assert.equal(type(Buffer.alloc(size), most), frames)
    }
  })

  test('a terminal client is closed with 1013 if too much input waits for its sandbox, or for all sandboxes', async () => {
    const bound = new Budget({ each: 10_000, all: 15_000, sure: 2000 })
    const [one, two, three] = [start(bound, 'a'), start(bound, 'a'), start(bound, 'b')]
    for (const { find } of [one, two, three]) find()
    one.type(Buffer.alloc(6000), 1)
    two.type(Buffer.alloc(6000), 1)
    assert.deepEqual([one.closed(), two.closed()], [undefined, 1013])
    three.type(Buffer.alloc(6000), 1)
    three.type(Buffer.alloc(6000), 1)
    three.type(Buffer.alloc(10), 1)
    assert.equal(three.closed(), 1013)
    assert.deepEqual([await one.takeAll(), await two.takeAll(), await three.takeAll()], [6000, 0, 6000])
    const next = start(bound, 'b')
    next.type(Buffer.alloc(6000), 1)
    assert.equal(next.closed(), undefined)
  })

  test('a sandbox can always buffer some terminal input, even if other sandboxes use up the total limit', () => {
    const bound = new Budget({ each: 10_000, all: 10_000, sure: 2000 })
    start(bound, 'a').type(Buffer.alloc(9000), 1)
    const little = start(bound, 'b')
    assert.equal(little.type(Buffer.alloc(100), 5), 5)
    assert.equal(little.closed(), undefined)
    little.type(Buffer.alloc(1000), 1)
    assert.equal(little.closed(), 1013)
  })

  test('a terminal client is closed with 1013 if a piece of its input is lost; later input is not typed', async () => {
    const bound = new Budget({ each: 10_000, all: 10_000 })
    const { type, takeAll, fail, find, closed } = start(bound)
    find()
    type(Buffer.alloc(100), 1)
    type(Buffer.alloc(10), 3)
    await fail(new AgentGone('it has not answered for a minute'))
    assert.equal(closed(), 1013)
    type(Buffer.alloc(10), 1)
    assert.equal(await takeAll(), 100)
    assert.equal(bound.has('box'), false)
  })

  test('input for a terminal whose shell has ended is dropped without an error; the end was reported before', async () => {
    const { type, takeAll, fail, find, closed } = start()
    find()
    type(Buffer.alloc(100), 1)
    await fail(new AgentRefused('job', 'ESRCH'))
    type(Buffer.alloc(10), 1)
    assert.equal(closed(), undefined)
    assert.equal(await takeAll(), 110)
  })

  test('buffered input for a terminal that does not exist is freed when the client disconnects', () => {
    const bound = new Budget({ each: 1000, all: 1000 })
    for (let round = 0; round < 3; round++) {
      const client = start(bound)
      client.type(Buffer.alloc(700), 1)
      assert.equal(client.closed(), undefined)
      client.end()
    }
  })
})
