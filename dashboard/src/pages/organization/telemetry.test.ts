import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { headersOf, linesOf } from './telemetry.ts'

suite('the headers of telemetry', () => {
  test('lines and headers say the same, masked values too', () => {
    const headers = { Authorization: '******', 'X-Team': 'a:b' }
    assert.deepEqual(headersOf(linesOf(headers)), headers)
    assert.equal(linesOf(null), '')
    assert.deepEqual(headersOf('\n  Authorization :  Bearer x  \n\n'), { Authorization: 'Bearer x' })
  })

  test('`headersOf` throws with the line that is no header, and for a name that is there twice', () => {
    assert.throws(() => headersOf('Bearer x'), /“Bearer x” is not a header/)
    assert.throws(() => headersOf('A: 1\nA: 2'), /A is there twice/)
  })
})
