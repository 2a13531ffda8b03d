import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { findUnboundedIn } from '#src/http/testing/unbounded.ts'
import { GateRequest } from '#src/wire/gate-link.ts'
import { heard } from './assignment.ts'

suite('messages to a runner', () => {
  test('each text, list and map in a message from control or from a gate has a maximum size', () => {
    assert.ok(heard.length > 0)
    for (const shape of [...heard, GateRequest]) assert.deepEqual(findUnboundedIn(shape), [])
  })
})
