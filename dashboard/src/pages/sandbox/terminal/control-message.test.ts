import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readControl } from './control-message.ts'

test('the dashboard reads exit code and reason from the server’s message that a terminal has ended', () => {
  const text = '{"type":"control","status":"exited","exitCode":3,"exitReason":"why"}'
  assert.deepEqual(readControl(text), { status: 'exited', exitCode: 3, reason: 'why' })
})

test('the dashboard reads the text of the server’s error message about a terminal (`readControl`)', () => {
  assert.deepEqual(readControl('{"type":"control","status":"error","error":"No."}'), { status: 'error', error: 'No.' })
})

test('`readControl` returns undefined for a terminal’s text message that is not a control message', () => {
  for (const text of [
    '',
    'x',
    'null',
    '[]',
    '3',
    '{"type":"x","status":"connected"}',
    '{"type":"control","status":"y"}',
  ])
    assert.equal(readControl(text), undefined)
})
