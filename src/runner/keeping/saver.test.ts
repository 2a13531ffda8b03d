import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { assigned, SimulatedHost } from '#src/runner/testing/simulated-host.ts'
import { gate } from '#src/runner/testing/test-keeper.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { Saver } from './saver.ts'

const startSaver = () => {
  const host = new SimulatedHost()
  const said: string[] = []
  const saver = new Saver({
    host,
    onSaved: ({ sandboxId, archive }) => void said.push(`${sandboxId} saved ${archive.id}`),
    onUnsaved: ({ sandboxId, archiveId, reason }) => void said.push(`${sandboxId} unsaved ${archiveId}: ${reason}`),
    log: silentLog(),
    retryMs: [1],
  })
  return {
    host,
    said,
    saver,
    until: async (is: () => boolean) => {
      const deadline = performance.now() + 10_000
      while (!is()) {
        assert.ok(performance.now() < deadline, `only this happened: ${[...host.asked, ...said]}`)
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
    },
    [Symbol.dispose]: () => saver[Symbol.dispose](),
  }
}

const stopped = (sandboxId: string, save?: string, changes: Partial<Assignment> = {}): Assignment =>
  assigned(sandboxId, 2, { target: 'stopped', ...(save === undefined ? {} : { save: { id: save } }), ...changes })

const listed = (...assignments: Assignment[]) =>
  assignments.map((assignment) => ({ assignment, state: 'stopped' as const }))

suite('saves of stopped disks', () => {
  test('a save is made once, even if control requests it again; then only the report is repeated', async () => {
    using kept = startSaver()
    kept.host.hold(stopped('box'), 'stopped')
    kept.saver.take(stopped('box', 'one'))
    await kept.until(() => kept.said.length === 1)
    kept.saver.takeAll(listed(stopped('box', 'one')))
    kept.saver.takeAll(listed(stopped('box')))
    assert.deepEqual(kept.said, ['box saved one', 'box saved one'])
    assert.deepEqual(kept.host.asked, ['save box 2'])
    kept.saver.take(stopped('box', 'two'))
    await kept.until(() => kept.said.at(-1) === 'box saved two')
  })

  test('a runner makes at most two saves at a time, and at most one of each organization', async () => {
    using kept = startSaver()
    const { passed, open } = gate()
    kept.host.before = () => passed
    for (const [id, organizationId] of [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
      ['c1', 'c'],
    ] as const) {
      kept.host.hold(stopped(id), 'stopped')
      kept.saver.take(stopped(id, 'x', { organizationId }))
    }
    await kept.until(() => kept.host.running === 2)
    assert.deepEqual(kept.host.asked, ['save a1 2', 'save b1 2'])
    open()
    await kept.until(() => kept.said.length === 4)
    assert.equal(kept.host.mostRunning, 2)
  })

  test('a failed save of a sandbox is reported once, and is retried after a pause until it succeeds', async () => {
    using kept = startSaver()
    kept.host.hold(stopped('box'), 'stopped')
    let failures = 3
    kept.host.before = () => {
      if (failures-- > 0) throw new Error('The archive store is full.')
    }
    kept.saver.take(stopped('box', 'one'))
    await kept.until(() => kept.said.length === 2)
    assert.deepEqual(kept.said, ['box unsaved one: The archive store is full.', 'box saved one'])
    assert.equal(kept.host.asked.length, 4)
  })

  test('a save that a verb interrupted is made again if control’s next list requests it', async () => {
    using kept = startSaver()
    kept.host.hold(stopped('box'), 'started')
    kept.saver.take(stopped('box', 'one'))
    await kept.until(() => kept.host.asked.length === 1 && kept.host.running === 0)
    kept.host.hold(stopped('box'), 'stopped')
    await new Promise(setImmediate)
    assert.deepEqual(kept.said, [])
    kept.saver.takeAll(listed(stopped('box', 'one')))
    await kept.until(() => kept.said.length === 1)
  })

  test('a save that control no longer requests leaves the queue, or if it runs, ends without a report', async () => {
    using kept = startSaver()
    const { passed, open } = gate()
    kept.host.before = () => passed
    for (const id of ['one', 'two', 'gone']) {
      kept.host.hold(stopped(id), 'stopped')
      kept.saver.take(stopped(id, 'x', { organizationId: 'same' }))
    }
    kept.saver.take(assigned('one', 3))
    kept.saver.takeAll(listed(stopped('two', 'x', { organizationId: 'same' })))
    open()
    await kept.until(() => kept.said.length === 1)
    await new Promise(setImmediate)
    assert.deepEqual([kept.host.asked, kept.said], [['save one 2', 'save two 2'], ['two saved x']])
  })
})
