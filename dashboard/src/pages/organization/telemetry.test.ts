import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { headersOf, linesOf } from './telemetry.ts'

suite('the headers of telemetry', () => {
  test('`headersOf` reads the lines that `linesOf` wrote, and gives back the same headers, masked values too', () => {
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
