import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { findUnboundedIn } from '#src/http/testing/unbounded.ts'
import { GateRequest } from '#src/wire/gate-link.ts'
import { heard } from './assignment.ts'

suite('what a runner hears', () => {
  test('has a bound in every text, list and map, from control and from a gate', () => {
    assert.ok(heard.length > 0)
    for (const shape of [...heard, GateRequest]) assert.deepEqual(findUnboundedIn(shape), [])
  })
})
