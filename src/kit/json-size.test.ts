import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { fitIntoJson, jsonBytes } from './json-size.ts'

const inJson = (bytes: Buffer) => jsonBytes(bytes.toString()) - 2

suite('the size of a text in JSON', () => {
  for (const [what, bytes] of Object.entries({
    words: Buffer.from('Two words, and a tab:\t"quoted"\\\n'),
    'control characters': Buffer.from(Array.from({ length: 32 }, (_, code) => code)),
    'other alphabets': Buffer.from('Ελληνικά 漢字 🏔 naïve'),
    'no UTF-8': Buffer.alloc(50, 0xff),
    'what only begins like a character': Buffer.alloc(50, 0xc3),
    'DEL and the line separators of JavaScript': Buffer.from('\x7f\u2028\u2029'),
    nothing: Buffer.alloc(0),
  })) {
    test(`fitIntoJson returns the length that ${what} has in JSON`, () => {
      assert.deepEqual(fitIntoJson(bytes, 1_000_000), { bytes: bytes.length, json: inJson(bytes) })
    })
  }

  test('the computed length of a text in JSON counts a character that is split over two pieces only once', () => {
    const text = Buffer.from('漢字🏔')
    for (let cut = 0; cut <= text.length; cut++) {
      const taken = [text.subarray(0, cut), text.subarray(cut)].map((piece) => fitIntoJson(piece, 100).json)
      assert.equal(taken[0]! + taken[1]!, text.length, String(cut))
    }
  })

  test('`fitIntoJson` returns how many bytes of a text fit into a JSON string with a limited length', () => {
    assert.deepEqual(fitIntoJson(Buffer.from('a\x01\x01\x01'), 13), { bytes: 3, json: 13 })
    assert.deepEqual(fitIntoJson(Buffer.from('a\x01\x01\x01'), 12), { bytes: 2, json: 7 })
    assert.deepEqual(fitIntoJson(Buffer.from('a'), 0), { bytes: 0, json: 0 })
  })
})
