// A short run of the fault ring; `./alcove test --faults --count 500` is the long one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describe, runRing } from '../faults/ring.ts'

test('whatever is killed at random, nothing is lost, doubled, orphaned or stuck', { timeout: 280_000 }, async () => {
  const outcome = await runRing({ seed: 20_261_122, count: 15, say: () => {} })
  assert.deepEqual(outcome.complaints, [], describe(outcome))
})
