import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { wasBetween } from '#src/toolbox/running/out-of-memory.ts'
import { MemoryKills } from './memory-kills.ts'

suite('times of out-of-memory kills in a sandbox', () => {
  let now = 0
  const kills = new MemoryKills(() => now)
  const lookAt = (time: number, count: number) => {
    now = time
    kills.look('box', count)
  }

  test('an out-of-memory kill is reported with the times of the counter readings before and after it', () => {
    lookAt(1000, 5)
    lookAt(3000, 5)
    lookAt(5000, 6)
    for (const [from, until, was] of [
      [0, 2999, false],
      [2000, 3500, true],
      [3500, 4000, true],
      [4000, 9000, true],
      [5001, 9000, false],
    ] as const)
      assert.equal(wasBetween(kills.spans('box'), from, until), was, `${from}–${until}`)
    assert.equal(wasBetween(kills.spans('another'), 0, 9000), false)
  })

  test('the times of a sandbox’s newest 64 out-of-memory kills are kept until the sandbox ends', () => {
    for (let n = 1; n <= 64; n++) lookAt(10_000 + n * 10, 6 + n)
    assert.equal(wasBetween(kills.spans('box'), 3000, 4000), false)
    for (const at of [10_010, 10_640]) assert.equal(wasBetween(kills.spans('box'), at - 5, at - 5), true)
    kills.remove('box')
    assert.equal(wasBetween(kills.spans('box'), 0, 20_000), false)
  })
})
