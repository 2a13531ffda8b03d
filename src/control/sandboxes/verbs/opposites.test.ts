// A hundred callers request opposite verbs of one sandbox at once. Each caller gets an answer, every move ends, and a delete still
// works.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { connectRunner, eventsOf, untilState } from '#test/control/simulated-runner.ts'
import { stateRows } from '../record/lifecycle.ts'

/** Makes numbers from a seed, so that a failure can be repeated. */
const randomFrom = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}

suite('opposite verbs at random', () => {
  for (const seed of [1, 2]) {
    test(`random opposite verbs, such as start and stop, cause no 500 and end in a stable state: seed ${seed}`, async () => {
      await using app = await startControl()
      await using runner = await connectRunner(app)
      const random = randomFrom(seed)
      runner.behave(({ target }) => {
        const luck = random()
        if (target === 'destroyed') return { type: luck < 0.9 ? 'do' : 'silent' }
        if (luck < 0.05) return { type: 'silent' }
        if (luck < 0.1) return { type: 'twice' }
        if (luck < 0.15) return { type: 'stale' }
        return luck < 0.2 ? { type: 'refuse', state: 'started', reason: 'Not now.' } : { type: 'do' }
      })
      runner.behaveWithImages(() => (random() < 0.8 ? 'do' : 'fail'))
      const { id } = (await app.as('member').post('/sandbox', { name: 'box' })).body
      await untilState(app, id, 'started').catch(() => {})
      let forks = 0
      const verbs = [
        (n: number) => app.as('member').post(`/sandbox/box/fork`, { name: `fork-${n}` }),
        (n: number) => app.as('member').post(`/sandbox/box/snapshot`, { name: `snapshot-${n}` }),
        (n: number) => app.as('member').post(`/sandbox/box/resize`, { memory: 1 + (n % 4) }),
        () => app.as('member').post(`/sandbox/box/pause`),
        () => app.as('member').post(`/sandbox/box/start`),
        () => app.as('member').post(`/sandbox/box/stop?force=${random() < 0.5}`),
        () => app.as('member').post(`/sandbox/box/archive`),
        () => app.as('member').post(`/sandbox/box/recover`),
        () => app.as('member').post(`/sandbox/box/last-activity`),
        (n: number) => app.as('member').put(`/sandbox/box/labels`, { labels: { n: String(n) } }),
      ]
      const replies = await Promise.all(
        Array.from({ length: 100 }, (_, n) => verbs[Math.floor(random() * verbs.length)]!(n)),
      )
      for (const { status, text } of replies) {
        assert.ok([200, 201, 400, 409, 422, 503].includes(status), `${status}: ${text}`)
        if (status === 200 && JSON.parse(text).forkKind) forks += 1
      }
      const events = await eventsOf(app, id)
      events.slice(1).forEach((event, n) => {
        assert.equal(event.from_state, events[n]?.to_state)
      })

      // Moves the clock until no move is under way, because every move ends by itself after its time limit.
      const unsettled = async () =>
        (await app.database.sql<{ state: keyof typeof stateRows }[]>`select state from sandboxes`).filter(
          ({ state }) => !stateRows[state].settled,
        )
      for (let round = 0; (await unsettled()).length > 0; round++) {
        assert.ok(round < 20, 'something is stuck')
        runner.say({ type: 'alive' })
        app.clock.advance({ minutes: 31 })
        await app.sweep()
      }

      runner.behave(() => ({ type: 'do' }))
      const rows = await app.database.sql<{ id: string }[]>`select id from sandboxes`
      assert.equal(rows.length, forks + 1)
      for (const row of rows) assert.equal((await app.as('owner').delete(`/sandbox/${row.id}`)).status, 200)
      for (const row of rows) await untilState(app, row.id, 'destroyed')
      assert.deepEqual([...runner.has.keys()], [])
    })
  }
})
