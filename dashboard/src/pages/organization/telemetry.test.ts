import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { headersOf, linesOf } from './telemetry.ts'

suite('the headers of telemetry', () => {
  test('`headersOf` turns the lines of `linesOf` back into the same headers, even with masked values', () => {
    const headers = { Authorization: '******', 'X-Team': 'a:b' }
    assert.deepEqual(headersOf(linesOf(headers)), headers)
    assert.equal(linesOf(null), '')
    assert.deepEqual(headersOf('\n  Authorization :  Bearer x  \n\n'), { Authorization: 'Bearer x' })
  })

  test('`headersOf` throws an error that quotes a line without a header, or the name of a duplicate header', () => {
    assert.throws(() => headersOf('Bearer x'), /“Bearer x” is not a header/)
    assert.throws(() => headersOf('A: 1\nA: 2'), /A is there twice/)
  })
})
