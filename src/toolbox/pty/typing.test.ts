import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { suite, test } from 'node:test'
import type { WebSocket } from 'ws'
import type { Jobs } from '../agent/agent.ts'
import { Typing } from './typing.ts'

/** A client, and a terminal that takes what is typed when the test says so. */
const start = () => {
  const socket = Object.assign(new EventEmitter(), {
    isPaused: false,
    pause: () => {
      socket.isPaused = true
    },
    resume: () => {
      socket.isPaused = false
    },
  })
  const took: (() => void)[] = []
  let bytes = 0
  const input: Jobs['input'] = (_id, data) => {
    bytes += data.length
    return new Promise((resolve) => took.push(resolve))
  }
  new Typing(socket as unknown as WebSocket).into({ input } as Jobs, 'shell')
  const type = (data: Buffer, most: number) => {
    let frames = 0
    for (; frames < most && !socket.isPaused; frames++) socket.emit('message', data)
    return frames
  }
  const takeAll = async () => {
    while (took.length > 0) {
      took.shift()?.()
      await new Promise(setImmediate)
    }
    return bytes
  }
  return { type, takeAll, socket }
}

suite('typing into a terminal that takes nothing', () => {
  test('stops its client after a megabyte, be it in one frame or in thousands', async () => {
    for (const [size, most] of [
      [1024 * 1024, 1],
      [1024, 1024],
      [1, 8 * 1024],
    ] as const) {
      const { type, takeAll, socket } = start()
      const frames = type(Buffer.alloc(size), 1_000_000)
      assert.ok(frames <= most, `${frames} frames of ${size}`)
      assert.equal(await takeAll(), frames * size)
      assert.equal(socket.isPaused, false)
      assert.equal(type(Buffer.alloc(size), most), frames)
    }
  })
})
