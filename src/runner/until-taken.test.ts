import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { generationHeaders } from '#src/wire/access.ts'
import type { Host } from './host.ts'
import { untilTaken } from './until-taken.ts'

const hostWith = (generations: () => number | undefined) =>
  ({
    get: () => {
      const generation = generations()
      return generation === undefined ? undefined : { assignment: { generation } }
    },
  }) as unknown as Pick<Host, 'get'>

suite('a call into a sandbox', () => {
  test('that names a generation waits until its runner has it, and not for a newer one', async () => {
    let looks = 0
    const host = hostWith(() => 4 + Math.floor(looks++ / 2))
    await untilTaken(host, 'box', generationHeaders({ leastGeneration: 6 }))
    assert.equal(looks, 5)
    await untilTaken(host, 'box', generationHeaders({ leastGeneration: 3 }))
    assert.equal(looks, 6)
  })

  test('that names none, a word, or a sandbox that is not here waits for nothing', async () => {
    await untilTaken(hostWith(assert.fail), 'box', generationHeaders({}))
    await untilTaken(
      hostWith(() => 1),
      'box',
      { 'x-alcove-generation': 'word' },
    )
    await untilTaken(
      hostWith(() => undefined),
      'box',
      generationHeaders({ leastGeneration: 2 }),
    )
  })

  test('503 when it has waited for ten seconds', async (t) => {
    t.mock.method(
      performance,
      'now',
      (() => {
        let now = 0
        return () => (now += 4000)
      })(),
    )
    const waiting = untilTaken(
      hostWith(() => 1),
      'box',
      generationHeaders({ leastGeneration: 2 }),
    )
    await assert.rejects(waiting, { status: 503 })
  })
})
