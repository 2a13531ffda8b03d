import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { RingBuffer } from './ring-buffer.ts'

suite('a ring buffer', () => {
  test('a buffer of limited size (`RingBuffer`) has the last bytes of its input, whatever the pieces were', () => {
    for (const sizes of [[1], [3], [7], [2, 5, 1, 11, 4], [20], [4, 4, 4]]) {
      const ring = new RingBuffer(4)
      let given = ''
      for (let n = 0; n < 30; n++) {
        const piece = Array.from({ length: sizes[n % sizes.length]! }, (_, i) => 'abcdefghij'[(n + i) % 10]).join('')
        ring.add(Buffer.from(piece))
        given += piece
        assert.equal(ring.bytes().toString(), given.slice(-4), `${sizes}, piece ${n}`)
        assert.deepEqual([ring.keptBytes, ring.totalBytes], [Math.min(4, given.length), given.length])
      }
    }
  })

  test('a buffer of limited size (`RingBuffer`) is empty if it has got only empty input', () => {
    const ring = new RingBuffer(1)
    ring.add(Buffer.alloc(0))
    assert.equal(ring.bytes().length, 0)
  })
})
