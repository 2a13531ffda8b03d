import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { runKills } from '#test/control/webhook-kills.ts'

suite('control is killed between a commit and its message', () => {
  // `node bench/webhook-kills.ts` kills control 200 times, each time between a commit and its message.
  test('every committed event arrives at least once, in order, and none that was not committed', async () => {
    const { kills, strictlyBetween, committed } = await runKills(['held', 5, 'held', 20])
    assert.deepEqual([kills, strictlyBetween], [4, 2])
    assert.ok(committed >= 4)
  })
})
