import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readControl } from './control-message.ts'

test('`readControl` reads the exit code and the reason from a message that says that a terminal has ended', () => {
  const text = '{"type":"control","status":"exited","exitCode":3,"exitReason":"why"}'
  assert.deepEqual(readControl(text), { status: 'exited', exitCode: 3, reason: 'why' })
})

test('`readControl` reads the text of an error message', () => {
  assert.deepEqual(readControl('{"type":"control","status":"error","error":"No."}'), { status: 'error', error: 'No.' })
})

test('`readControl` returns undefined for a text that is not a control message', () => {
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
