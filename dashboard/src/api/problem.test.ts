import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { problemOf } from './problem.ts'

suite('the error made from an answer that is not a success', () => {
  const refused = () => new Response(null, { status: 400, headers: { 'x-request-id': 'id' } })

  test('`problemOf` returns an error with the message, the code and the request id of the server’s answer', () => {
    const { message, code, requestId, status } = problemOf(refused(), { message: 'No such file', code: 'NOT_FOUND' })
    assert.deepEqual([message, code, requestId, status], ['No such file', 'NOT_FOUND', 'id', 400])
    assert.equal(problemOf(refused(), '<html>').message, 'The server answered with status 400.')
  })

  test('`problemOf` replaces control characters and text direction marks in messages, and cuts long messages', () => {
    const { message } = problemOf(refused(), { message: 'No such file: \u202egnp\u001b]0;x\u0007\nsecond line' })
    assert.equal(message, 'No such file: \ufffdgnp\nsecond line')
    assert.equal(problemOf(refused(), { message: 'x'.repeat(1_000_000) }).message.length, 2000)
  })
})
