import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { BoundedOutput } from './output.ts'

suite('bounded output', () => {
  test('keeps everything below the limit', () => {
    using output = new BoundedOutput('o', 10)
    for (const byte of 'abcdefghij') output.add(Buffer.from(byte))
    assert.deepEqual([output.text(), output.droppedBytes], ['abcdefghij', 0])
  })

  test('says how much it left out, and does not cut a character in two', () => {
    using output = new BoundedOutput('o', 8)
    output.add(Buffer.from('abcdef€more'))
    assert.equal(output.text(), 'abcdef\n[output truncated: 5 more bytes were not kept]\n')
  })

  test('keeps nothing after the first byte that was left out, so that there is one gap only', () => {
    using output = new BoundedOutput('o', 4)
    output.add(Buffer.from('abcdef'))
    output.add(Buffer.from('g'))
    assert.deepEqual([output.keptBytes, output.droppedBytes], [4, 3])
  })

  test('keeps less of what JSON makes long, and says so', () => {
    using output = new BoundedOutput('o', 12)
    for (const piece of ['ab', '\x01\x01', '\x01\x01']) output.add(Buffer.from(piece))
    assert.equal(output.text(), 'ab\x01\x01\x01\n[output truncated: 1 more bytes were not kept]\n')
    using text = new BoundedOutput('o', 12)
    text.add(Buffer.from('"a"\n"b"\n"c"\n'))
    assert.equal(text.droppedBytes, 0)
  })

  test('all outputs together have a bound; of one owner they leave as much to others, and give back what they had', () => {
    const piece = Buffer.alloc(16 * 1024 * 1024, 'x')
    const keptBy = (owner: string) => {
      const many = Array.from({ length: 40 }, () => new BoundedOutput(owner))
      for (const output of many) output.add(piece)
      return { many, MiB: many.reduce((sum, { keptBytes }) => sum + keptBytes, 0) / 1024 ** 2 }
    }
    const [greedy, other] = [keptBy('greedy'), keptBy('other')]
    assert.ok(greedy.MiB > 255 && greedy.MiB < 260, String(greedy.MiB))
    assert.ok(other.MiB > 127 && other.MiB < 132, String(other.MiB))
    for (const output of [...greedy.many, ...other.many]) output[Symbol.dispose]()
    const again = keptBy('greedy')
    assert.equal(again.MiB, greedy.MiB)
    for (const output of again.many) output[Symbol.dispose]()
  })

  test('where all that is shared is taken, 64 KiB are kept of each', () => {
    const owners = Array.from({ length: 60 }, (_, n) =>
      Array.from({ length: 20 }, () => new BoundedOutput(`owner ${n}`)),
    ).flat()
    for (const output of owners) output.add(Buffer.alloc(16 * 1024 * 1024, 'x'))
    using late = new BoundedOutput('late')
    late.add(Buffer.alloc(64 * 1024, 'x'))
    assert.deepEqual([late.keptBytes, late.droppedBytes], [64 * 1024, 0])
    for (const output of owners) output[Symbol.dispose]()
  })
})
