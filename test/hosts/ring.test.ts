// A short fault test of hosts: kills hosts and control processes and cuts connections at random. A long test:
// `./alcove test --faults --hosts --count 100`
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describe } from '#test/faults/ring.ts'
import { needsRoot } from '#test/needs-root.ts'
import { Network } from './namespaces.ts'
import { runHostsRing } from './ring.ts'

test('after random failures of hosts and control, no sandbox is lost, runs twice, is left over or hangs', {
  skip: needsRoot,
  timeout: 280_000,
}, async () => {
  await using network = await Network.open()
  const outcome = await runHostsRing(network, { seed: 20_261_127, count: 3, say: () => {} })
  assert.deepEqual(outcome.complaints, [], describe(outcome))
})
