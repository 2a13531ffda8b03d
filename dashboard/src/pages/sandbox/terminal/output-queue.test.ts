import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OutputQueue } from './output-queue.ts'

const MiB = 1024 * 1024

/** Simulates a terminal that finishes drawing only when the test calls `drawAll`. */
const slowTerminal = () => {
  const drawn: Uint8Array[] = []
  let done: (() => void) | undefined
  let dropped = 0
  const queue = new OutputQueue({
    draw: (piece, whenDone) => {
      drawn.push(piece)
      done = whenDone
    },
    onDropped: (bytes) => {
      dropped = bytes
    },
  })
  const drawAll = () => {
    for (let next = done; next !== undefined; next = done) {
      done = undefined
      next()
    }
  }
  return { queue, drawn, drawAll, dropped: () => dropped, text: () => Buffer.concat(drawn).toString('latin1') }
}

test('the terminal draws all output in order, one piece after another (`OutputQueue`)', () => {
  const { queue, drawn, drawAll, text } = slowTerminal()
  queue.add(Buffer.from('one '))
  queue.add(Buffer.from('two '))
  assert.equal(drawn.length, 1)
  queue.add(Buffer.alloc(200_000, 'x'))
  drawAll()
  assert.equal(text(), `one two ${'x'.repeat(200_000)}`)
  assert.ok(drawn.every(({ length }) => length <= 64 * 1024))
})

test('above 512 KiB, `OutputQueue` drops and counts old output, and goes on with a new line', () => {
  const { queue, drawAll, dropped, text } = slowTerminal()
  queue.add(Buffer.from('first\n'))
  for (let i = 0; i < 100; i++) {
    queue.add(Buffer.from(`\x1b]0;cut${'y\n'.repeat(MiB / 8)}`))
    assert.ok(queue.waitingBytes <= MiB / 2 + 1)
  }
  queue.add(Buffer.from('last\n'))
  drawAll()
  assert.ok(dropped() > 20 * MiB)
  assert.ok(text().startsWith('first\n\x18y\ny\n'))
  assert.ok(text().endsWith('y\nlast\n'))
})

test('the terminal shows the end of a single output message that is above the limit (`OutputQueue`)', () => {
  const { queue, drawAll, dropped, text } = slowTerminal()
  queue.add(Buffer.from('a'))
  queue.add(Buffer.concat([Buffer.alloc(3 * MiB, 'z'), Buffer.from('\nend')]))
  drawAll()
  assert.ok(dropped() > MiB)
  assert.equal(text(), 'a\x18end')
})
