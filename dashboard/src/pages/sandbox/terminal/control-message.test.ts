import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readControl } from './control-message.ts'

test('an end has the exit code and the reason', () => {
  const text = '{"type":"control","status":"exited","exitCode":3,"exitReason":"why"}'
  assert.deepEqual(readControl(text), { status: 'exited', exitCode: 3, reason: 'why' })
})

test('an error has its sentence', () => {
  assert.deepEqual(readControl('{"type":"control","status":"error","error":"No."}'), { status: 'error', error: 'No.' })
})

test('anything else is no message', () => {
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
