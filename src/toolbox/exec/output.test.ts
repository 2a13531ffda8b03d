import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { BoundedOutput } from './output.ts'

suite('bounded output', () => {
  test('keeps everything below the limit', () => {
    using output = new BoundedOutput(10)
    for (const byte of 'abcdefghij') output.add(Buffer.from(byte))
    assert.deepEqual([output.text(), output.droppedBytes], ['abcdefghij', 0])
  })

  test('says how much it left out, and does not cut a character in two', () => {
    using output = new BoundedOutput(8)
    output.add(Buffer.from('abcdef€more'))
    assert.equal(output.text(), 'abcdef\n[output truncated: 5 more bytes were not kept]\n')
  })

  test('keeps nothing after the first byte that was left out, so that there is one gap only', () => {
    using output = new BoundedOutput(4)
    output.add(Buffer.from('abcdef'))
    output.add(Buffer.from('g'))
    assert.deepEqual([output.keptBytes, output.droppedBytes], [4, 3])
  })

  test('all outputs together have a bound, and give back what they had', () => {
    const many = Array.from({ length: 20 }, () => new BoundedOutput())
    const piece = Buffer.alloc(16 * 1024 * 1024)
    for (const output of many) output.add(piece)
    const kept = many.reduce((sum, { keptBytes }) => sum + keptBytes, 0)
    assert.ok(kept <= 256 * 1024 * 1024 && kept > 200 * 1024 * 1024)
    for (const output of many) output[Symbol.dispose]()
    using next = new BoundedOutput()
    next.add(piece)
    assert.equal(next.droppedBytes, 0)
  })
})
