import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { lastLines } from './run-step.ts'

suite('what an error repeats of the output of a failed line', () => {
  test('is whole lines, the last ones', () => {
    const lines = Array.from({ length: 200 }, (_, n) => `line number ${n}`)
    const said = lastLines(Buffer.from(`${lines.join('\n')}\n`)).split('\n')
    assert.ok(said.length > 50 && said.length < 200)
    assert.deepEqual(said, lines.slice(-said.length))
  })

  test('is everything where that is short', () => {
    assert.equal(lastLines(Buffer.from('one\ntwo\n')), 'one\ntwo')
    assert.equal(lastLines(Buffer.from('')), '')
  })

  test('keeps a line that begins exactly at the bound', () => {
    const line = 'x'.repeat(1200)
    assert.equal(lastLines(Buffer.from(`before\n${line}`)), line)
  })

  test('is the end of a line that is too long', () => {
    assert.equal(lastLines(Buffer.from('x'.repeat(5000))), 'x'.repeat(1200))
    assert.match(lastLines(Buffer.from(`${'x'.repeat(5000)}\n`)), /^x{1199}$/)
  })
})
