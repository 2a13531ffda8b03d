import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { OutputDecoder } from './output-decoder.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const acute = '\u0301'

suite('the decoded output of a terminal', () => {
  test('`OutputDecoder` returns the text that a program wrote, even if a character is split over two pieces', () => {
    const text = 'é ö 日本 👩‍👩‍👧 \u001b[31mrot\u001b[0m \u0e01\u0e33\u0e49 \ufeff'
    const decoder = new OutputDecoder()
    assert.equal(Array.from(bytes(text), (byte) => decoder.decode(Uint8Array.of(byte))).join(''), text)
    assert.equal(new OutputDecoder().decode(bytes(text)), text)
  })

  test('`OutputDecoder` keeps at most 16 combining marks per character, however the output is split', () => {
    const long = `e${acute.repeat(5000)}x`
    const kept = `e${acute.repeat(16)}x`
    assert.equal(new OutputDecoder().decode(bytes(long)), kept)
    const decoder = new OutputDecoder()
    assert.equal(Array.from(bytes(long), (byte) => decoder.decode(Uint8Array.of(byte))).join(''), kept)
    assert.ok(new OutputDecoder().decode(bytes(`e${`${acute}\u007f`.repeat(5000)}`)).length <= 17)
    assert.ok(new OutputDecoder().decode(bytes(`e${'\u{e0061}\u200d'.repeat(5000)}`)).length <= 33)
  })

  test('after a reset, `OutputDecoder` forgets incomplete characters and combining accents of earlier output', () => {
    const decoder = new OutputDecoder()
    decoder.decode(bytes(`e${acute.repeat(16)}`))
    decoder.decode(Uint8Array.of(0xe2, 0x82))
    decoder.reset()
    assert.equal(decoder.decode(bytes(`${acute}a`)), `${acute}a`)
  })
})
