// Kills hosts and controls and cuts links at random, for a short time. `./alcove test --faults --hosts --count 100` does this for
// long.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describe } from '#test/faults/ring.ts'
import { needsRoot } from '#test/needs-root.ts'
import { Network } from './namespaces.ts'
import { runHostsRing } from './ring.ts'

test('hosts and controls that fail lose, double, leave and hold up nothing', {
  skip: needsRoot,
  timeout: 280_000,
}, async () => {
  await using network = await Network.open()
  const outcome = await runHostsRing(network, { seed: 20_261_127, count: 3, say: () => {} })
  assert.deepEqual(outcome.complaints, [], describe(outcome))
})
