import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { BoundedOutput } from './output.ts'

suite('the limited output of a command', () => {
  test('a command’s output below the limit is stored completely', () => {
    using output = new BoundedOutput('o', 10)
    for (const byte of 'abcdefghij') output.add(Buffer.from(byte))
    assert.deepEqual([output.text(), output.droppedBytes], ['abcdefghij', 0])
  })

  test('a command’s output above the limit is cut to its beginning and end, with a line about the gap', () => {
    using output = new BoundedOutput('o', 32)
    for (let n = 0; n < 100; n++) output.add(Buffer.from(`${n} `))
    assert.equal(output.text(), '0 1 2 3 4 5 6 7 8 9 10 11 12 1\n[output truncated: 258 bytes were left out here]\n9 ')
    assert.deepEqual([output.keptBytes, output.droppedBytes], [32, 258])
  })

  test('a command’s output is never cut in the middle of a character', () => {
    using output = new BoundedOutput('o', 48)
    output.add(Buffer.from('€'.repeat(20)))
    assert.equal(output.text(), `${'€'.repeat(15)}\n[output truncated: 12 bytes were left out here]\n€`)
    using odd = new BoundedOutput('o', 32)
    odd.add(Buffer.from(`a${'€'.repeat(20)}`))
    assert.equal(odd.text(), `a${'€'.repeat(9)}\n[output truncated: 29 bytes were left out here]\n`)
  })

  test('`dropCutCharacter` removes an incomplete character from the end of an output, and nothing else', () => {
    const bytes = Buffer.from('a€')
    for (const [size, text] of [
      [1, 'a'],
      [2, 'a'],
      [3, 'a'],
      [4, 'a€'],
    ] as const) {
      using output = new BoundedOutput('o', 48)
      output.add(bytes.subarray(0, size))
      output.dropCutCharacter()
      assert.equal(output.text(), text)
    }
  })

  test('the last line of a command’s long output is stored, whether it arrives in one piece or in many', () => {
    for (const size of [1, 1000, 65_536, 2_500_000]) {
      using output = new BoundedOutput('o', 1_000_000)
      const piece = Buffer.alloc(size, 'x')
      for (let given = 0; given < 1_250_000; given += size) output.add(piece)
      output.add(Buffer.from('\nREAL-END\n'))
      assert.ok(output.text().startsWith('xxxx'))
      assert.ok(output.text().endsWith('x\nREAL-END\n'), String(size))
    }
  })

  test('a command’s output whose JSON text would be too long is shortened, with a line about the gap', () => {
    using output = new BoundedOutput('o', 16)
    for (const piece of ['ab', '\x01\x01', '\x01\x01\x01\x01', '\x01\x01']) output.add(Buffer.from(piece))
    assert.equal(output.text(), 'ab\x01\x01\x01\x01\n[output truncated: 4 bytes were left out here]\n')
    using text = new BoundedOutput('o', 16)
    text.add(Buffer.from('"a"\n"b"\n"c"\n"d"'))
    assert.equal(text.droppedBytes, 0)
  })

  test('all stored outputs of commands share a memory limit; one owner may use at most half of what is free', () => {
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

  test('64 KiB of a command’s output are always stored, even if other outputs fill the shared memory', () => {
    const owners = Array.from({ length: 60 }, (_, n) =>
      Array.from({ length: 20 }, () => new BoundedOutput(`owner ${n}`)),
    ).flat()
    const piece = Buffer.alloc(16 * 1024 * 1024, 'x')
    for (const output of owners) output.add(piece)
    using late = new BoundedOutput('late')
    late.add(Buffer.alloc(64 * 1024, 'x'))
    assert.deepEqual([late.keptBytes, late.droppedBytes], [64 * 1024, 0])
    for (const output of owners) output[Symbol.dispose]()
  })
})
