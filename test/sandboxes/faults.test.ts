// Kills programs of a server at random, for a short time. The command `./alcove test --faults --count 500` runs a long test.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { describe, runRing } from '../faults/ring.ts'
import { type Platform, platform } from './harness.ts'

let alcove: Platform
before(async () => {
  alcove = await platform({ own: true, image: 'small' })
})
after(async () => {
  await alcove?.[Symbol.asyncDispose]()
})

test('after random kills of programs, no sandbox or command is lost, runs twice, is left over or hangs', {
  timeout: 280_000,
}, async () => {
  const outcome = await runRing(alcove, { seed: 20_261_122, count: 15, say: () => {} })
  assert.deepEqual(outcome.complaints, [], describe(outcome))
})

test('no command and no preview of a sandbox fails because its runner is killed', { timeout: 280_000 }, async () => {
  const outcome = await runRing(alcove, { seed: 20_261_126, count: 8, only: ['runner'], say: () => {} })
  assert.deepEqual(outcome.complaints, [], describe(outcome))
  assert.ok((outcome.verbs.get('work that goes on') ?? 0) > 20, describe(outcome))
})
