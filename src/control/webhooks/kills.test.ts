import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { runKills } from '#test/control/webhook-kills.ts'

suite('a kill of control between the commit of a change and the sending of its message', () => {
  // The test kills control only four times; `node bench/webhook-kills.ts` kills it 200 times.
  test('the webhook of a committed change arrives even if control is killed; a rolled-back change has none', async () => {
    const { kills, strictlyBetween, committed } = await runKills(['held', 5, 'held', 20])
    assert.deepEqual([kills, strictlyBetween], [4, 2])
    assert.ok(committed >= 4)
  })
})
