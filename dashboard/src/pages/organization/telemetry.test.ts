import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { headersOf, linesOf } from './telemetry.ts'

suite('the headers of telemetry', () => {
  test('telemetry headers turn into lines and back without a change; a masked value stays masked', () => {
    const headers = { Authorization: '******', 'X-Team': 'a:b' }
    assert.deepEqual(headersOf(linesOf(headers)), headers)
    assert.equal(linesOf(null), '')
    assert.deepEqual(headersOf('\n  Authorization :  Bearer x  \n\n'), { Authorization: 'Bearer x' })
  })

  test('if a telemetry header is malformed or occurs twice, the form’s error quotes that header', () => {
    assert.throws(() => headersOf('Bearer x'), /“Bearer x” is not a header/)
    assert.throws(() => headersOf('A: 1\nA: 2'), /A is given twice/)
  })
})
