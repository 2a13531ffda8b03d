import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { LogLines } from './log-lines.ts'

const textOf = (...pieces: string[]): string => {
  const lines = new LogLines()
  for (const piece of pieces) lines.add(piece)
  return lines.text
}

suite('the lines of a build log', () => {
  test('`LogLines` removes escape sequences, even a sequence that is split over two pieces', () => {
    assert.equal(textOf('\u001b[1;3', '1mred\u001b[0m\n'), 'red')
    assert.equal(textOf('\u001b]0;title\u0007a\u001b]8;;http://x', '/\u001b\\link\u001b]8;;\u001b\\b'), 'alinkb')
    assert.equal(textOf('a\u001b]52;c;never ended\nnext'), 'a\nnext')
    assert.equal(textOf('x\u001b[2Jy\u001b(Bz\u001b'), 'xyz')
  })

  test('if carriage returns overwrite a line, `LogLines` keeps only the last text', () => {
    assert.equal(textOf('10 %\r20 %', '\r30 %\r\ndone\r\n'), '30 %\ndone')
  })

  test('`LogLines` replaces control characters and characters that change the writing direction by a visible sign', () => {
    assert.equal(textOf('a\u0000b\u202ec'), 'a\ufffdb\ufffdc')
  })

  test('`LogLines` drops the oldest lines above its limit, and cuts lines that are too long', () => {
    const lines = new LogLines()
    for (let n = 0; n < 6000; n += 1) lines.add(`${n}\n`)
    assert.equal(lines.dropped, 1000)
    assert.match(lines.text, /^1000\n/)
    assert.equal(textOf(`${'x'.repeat(50_000)}\n`).length, 4001)
    lines.add('y'.repeat(1_000_000))
    assert.ok(lines.text.length < 50_000)
  })
})
