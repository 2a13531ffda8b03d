import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { runKills } from '#test/control/webhook-kills.ts'

suite('control is killed between a commit and its message', () => {
  // `node bench/webhook-kills.ts` does it 200 times.
  test('every committed event arrives at least once, in order, and none that was not committed', async () => {
    const { kills, betweenCommitAndSend, committed } = await runKills(5)
    assert.equal(kills, 5)
    assert.ok(betweenCommitAndSend > 0, 'no kill came before the message was sent')
    assert.ok(committed >= 5)
  })
})
