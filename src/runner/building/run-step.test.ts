import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { lastLines } from './run-step.ts'

suite('the output of a failed RUN in its error', () => {
  test('the error of a failed RUN quotes the last lines of its output, and only whole lines', () => {
    const lines = Array.from({ length: 200 }, (_, n) => `line number ${n}`)
    const said = lastLines(Buffer.from(`${lines.join('\n')}\n`)).split('\n')
    assert.ok(said.length > 50 && said.length < 200)
    assert.deepEqual(said, lines.slice(-said.length))
  })

  test('the error of a failed RUN quotes the whole output if it is short', () => {
    assert.equal(lastLines(Buffer.from('one\ntwo\n')), 'one\ntwo')
    assert.equal(lastLines(Buffer.from('')), '')
  })

  test('the error of a failed RUN quotes the whole last line of output if the line has 1200 characters', () => {
    const line = 'x'.repeat(1200)
    assert.equal(lastLines(Buffer.from(`before\n${line}`)), line)
  })

  test('the error of a failed RUN quotes only the end of a line of output that is longer than the limit', () => {
    assert.equal(lastLines(Buffer.from('x'.repeat(5000))), 'x'.repeat(1200))
    assert.match(lastLines(Buffer.from(`${'x'.repeat(5000)}\n`)), /^x{1199}$/)
  })
})
