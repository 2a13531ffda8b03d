import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { assigned } from '#src/runner/testing/simulated-host.ts'
import { gate, startKeeper } from '#src/runner/testing/test-keeper.ts'

const oneLane = { atOnce: { work: 1, stops: 1, transfers: 1 } }

suite('the lanes of verbs on a runner', () => {
  test('a delete does not wait for verbs of other sandboxes, and removes its own sandbox’s queued verb', async () => {
    for (const first of [{}, { target: 'archived', archive: { id: 'a' } }] as const) {
      using kept = startKeeper({ atOnce: { work: 2, stops: 1, transfers: 1 } })
      kept.host.hold(assigned('other', 1), 'stopped')
      kept.host.hold(assigned('box', 1), 'stopped')
      const { passed, open } = gate()
      kept.host.before = (verb) => (verb === 'destroy' ? undefined : passed)
      kept.keeper.take(assigned('other', 2, first))
      kept.keeper.take(assigned('box', 2, first))
      kept.keeper.take(assigned('box', 3, { target: 'destroyed' }))
      await kept.reported(1)
      assert.deepEqual(kept.said(), ['box 3 destroyed'])
      open()
      await kept.settled()
      const late = kept.host.asked.slice(kept.host.asked.indexOf('destroy box') + 1)
      assert.deepEqual(late, [])
    }
  })

  test('the restore of an archived sandbox does not wait for running archives of other sandboxes', async () => {
    using kept = startKeeper()
    const { passed, open } = gate()
    kept.host.before = (verb) => (verb === 'archive' ? passed : undefined)
    for (let n = 0; n < 20; n++) {
      kept.host.hold(assigned(`box${n}`, 1), 'stopped')
      kept.keeper.take(assigned(`box${n}`, 2, { target: 'archived', archive: { id: 'a' } }))
    }
    kept.keeper.take(assigned('back', 3, { archive: { id: 'b', sha256: 'c' } }))
    await kept.reported(1)
    assert.deepEqual(kept.said(), ['back 3 started'])
    open()
    await kept.reported(21)
  })

  test('a runner runs at most 8 starts at a time, at most 6 of one organization; further starts wait', async () => {
    using kept = startKeeper()
    const { passed, open } = gate()
    kept.host.before = () => passed
    for (let i = 0; i < 30; i++) kept.keeper.take(assigned(`box${i}`, 1))
    await new Promise(setImmediate)
    assert.equal(kept.host.running, 6)
    for (let i = 0; i < 30; i++) kept.keeper.take(assigned(`other${i}`, 1, { organizationId: 'other' }))
    await new Promise(setImmediate)
    assert.equal(kept.host.running, 8)
    open()
    await kept.reported(60)
    assert.equal(kept.host.mostRunning, 8)
  })

  test('a sandbox to be archived is stopped first; only then does its archive wait for a lane', async () => {
    using kept = startKeeper()
    const { passed, open } = gate()
    kept.host.before = (verb) => (verb === 'archive' ? passed : undefined)
    const archived = { target: 'archived', archive: { id: 'a' } } as const
    for (let n = 0; n < 6; n++) {
      kept.host.hold(assigned(`box${n}`, 1), n % 2 === 0 ? 'started' : 'paused')
      kept.keeper.take(assigned(`box${n}`, 2, archived))
    }
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    assert.deepEqual(
      kept.host.list().map(({ status }) => status),
      Array(6).fill('stopped'),
    )
    assert.equal(kept.host.running, 2)
    open()
    await kept.reported(6)
    assert.ok(kept.host.list().every(({ status }) => status === 'archived'))
  })

  test('a destroy aborts its sandbox’s running verb at once, even while the destroy waits for a lane', async () => {
    using kept = startKeeper(oneLane)
    const { passed, open } = gate()
    for (const id of ['first', 'second']) kept.host.hold(assigned(id, 1), 'started')
    kept.host.before = () => passed
    for (const id of ['first', 'second']) kept.keeper.take(assigned(id, 2, { target: 'destroyed' }))
    assert.deepEqual([kept.host.cut, kept.host.asked], [['first', 'second'], ['destroy first']])
    open()
    await kept.reported(2)
  })

  test('a queued start is neither carried out nor reported if its sandbox has moved to another runner', async () => {
    using kept = startKeeper(oneLane)
    const { passed, open } = gate()
    kept.host.before = () => passed
    const archive = { id: 'a', sha256: 'f'.repeat(64) }
    for (const id of ['first', 'second', 'third']) kept.keeper.take(assigned(id, 2, { archive }))
    kept.keeper.takeAll([{ assignment: assigned('third', 2, { archive }), state: 'restoring' }], kept.time.now + 1)
    assert.deepEqual(kept.host.cut, ['first', 'second'])
    open()
    await kept.reported(1)
    await kept.settled()
    assert.deepEqual([kept.said(), kept.host.asked], [['third 2 started'], ['start first 2', 'start third 2']])
    // If control later assigns the sandbox to this runner again, the runner starts the sandbox as usual.
    kept.keeper.take(assigned('second', 3, { archive }))
    await kept.reported(2)
    assert.equal(kept.said().at(-1), 'second 3 started')
  })
})

suite('lanes for copying a parent’s disk for forks', () => {
  const fork = (id: string, generation = 1) => assigned(id, generation, { isNew: true, forkOf: 'parent' })

  test('while 30 forks wait until the disk of their parent can be copied, another sandbox can start', async () => {
    using kept = startKeeper(oneLane)
    const { passed, open } = gate()
    kept.host.hold(assigned('parent', 1), 'started')
    kept.host.before = (verb) => (verb === 'copy' ? passed : undefined)
    for (let n = 0; n < 30; n++) kept.keeper.take(fork(`fork${n}`))
    kept.keeper.take(assigned('box', 1))
    await kept.reported(1)
    assert.deepEqual([kept.said(), kept.host.running], [['box 1 started'], 1])
    open()
    await kept.reported(31)
    assert.ok(kept.said().every((line) => line.endsWith(' 1 started')))
  })

  test('a fork’s disk is copied before any verb that is assigned to its parent later', async () => {
    for (const target of ['archived', 'destroyed', 'stopped', 'paused'] as const) {
      using kept = startKeeper()
      const { passed, open } = gate()
      kept.host.hold(assigned('parent', 1), 'started')
      kept.host.before = (verb) => (verb === 'copy' ? passed : undefined)
      for (let n = 0; n < 10; n++) kept.keeper.take(fork(`fork${n}`))
      kept.keeper.take(assigned('parent', 2, { target, archive: { id: 'a' } }))
      await new Promise(setImmediate)
      assert.deepEqual([kept.said(), kept.host.get('parent')?.status], [[], 'started'])
      open()
      await kept.reported(11)
      assert.deepEqual(new Set(kept.reports.map(({ state }) => state)), new Set(['started', target]))
    }
  })

  test('a fork’s disk is copied before its parent is destroyed, even if control lists the parent first', async () => {
    using kept = startKeeper()
    kept.host.hold(assigned('parent', 1), 'stopped')
    kept.keeper.takeAll(
      [
        { assignment: assigned('parent', 2, { target: 'destroyed' }), state: 'destroying' },
        { assignment: fork('fork'), state: 'forking' },
      ],
      kept.time.now,
    )
    await kept.reported(2)
    assert.deepEqual(kept.said().sort(), ['fork 1 started', 'parent 2 destroyed'])
  })

  test('a fork of a sandbox whose disk is gone fails, and the error says that the disk is gone', async () => {
    using kept = startKeeper()
    kept.host.before = (verb) => {
      if (verb === 'start') throw new Error('The sandbox that was to be forked is gone.')
    }
    kept.keeper.take(fork('fork'))
    await kept.reported(1)
    assert.deepEqual(
      kept.reports.map(({ state, errorReason }) => [state, errorReason]),
      [['error', 'The sandbox that was to be forked is gone.']],
    )
  })

  test('a fork that is stopped and destroyed before its first start leaves no copy of the parent’s disk', async () => {
    using kept = startKeeper()
    const { passed, open } = gate()
    kept.host.hold(assigned('parent', 1), 'stopped')
    kept.host.before = (verb) => (verb === 'copy' ? passed : undefined)
    kept.keeper.take(fork('fork'))
    kept.keeper.take(assigned('fork', 2, { target: 'stopped' }))
    open()
    await kept.reported(1)
    kept.keeper.take(assigned('fork', 3, { target: 'destroyed' }))
    await kept.reported(2)
    assert.deepEqual(kept.said(), ['fork 2 stopped', 'fork 3 destroyed'])
    assert.deepEqual(kept.host.asked, ['copy fork 1', 'destroy fork'])
  })
})
