import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { FaultInside } from '#src/runner/machine/machine.ts'
import { assigned } from '#src/runner/testing/simulated-host.ts'
import { gate, startKeeper } from '#src/runner/testing/test-keeper.ts'

const minutes = 60_000

suite('keeper: assignments are carried out', () => {
  test('if an archived sandbox is not on the host, the runner reports `archived`, and refuses a stop', async () => {
    using kept = startKeeper()
    const archive = { id: 'first', sha256: 'a'.repeat(64) }
    kept.keeper.take(assigned('box', 1, { target: 'archived', archive }))
    kept.keeper.take(assigned('box', 2, { target: 'stopped', archive }))
    await kept.reported(2)
    assert.deepEqual(kept.said(), ['box 1 archived', 'box 2 archived'])
    assert.deepEqual(
      kept.reports.map(({ refused }) => refused),
      [undefined, 'The sandbox is archived. Start it to restore its disk.'],
    )
    assert.deepEqual(kept.host.asked, [])
  })

  test('each start, stop and destroy of a sandbox is reported with its generation', async () => {
    using kept = startKeeper()
    const targets = ['started', 'stopped', 'started', 'destroyed'] as const
    for (const [index, target] of targets.entries()) {
      kept.keeper.take(assigned('box', index + 1, { target }))
      await kept.reported(index + 1)
    }
    assert.deepEqual(kept.host.asked, ['start box 1', 'stop box 2', 'start box 3', 'destroy box'])
    assert.deepEqual(kept.said(), ['box 1 started', 'box 2 stopped', 'box 3 started', 'box 4 destroyed'])
  })

  test('a runner reports pause and resume; a sandbox that ends while it is paused is reported as stopped', async () => {
    using kept = startKeeper()
    for (const [index, target] of (['started', 'paused', 'started', 'paused'] as const).entries()) {
      kept.keeper.take(assigned('box', index + 1, { target }))
      await kept.reported(index + 1)
    }
    assert.deepEqual(kept.host.asked, ['start box 1', 'pause box 2', 'start box 3', 'pause box 4'])
    assert.deepEqual(kept.said(), ['box 1 started', 'box 2 paused', 'box 3 started', 'box 4 paused'])
    kept.host.endByItself('box', { detail: 'It was ended.' })
    assert.equal(kept.said().at(-1), 'box 4 stopped')
  })

  test('the report about an archived sandbox has its archive; progress is reported at most once a second', async () => {
    const progress: string[] = []
    using kept = startKeeper({
      onProgress: (sandboxId, generation, { step, percent }) =>
        progress.push(`${sandboxId} ${generation} ${step} ${percent}`),
    })
    kept.keeper.take(assigned('box', 1))
    await kept.reported(1)
    kept.keeper.take(assigned('box', 2, { target: 'archived', archive: { id: 'a' } }))
    await kept.reported(2)
    assert.deepEqual([kept.said().at(-1), progress], ['box 2 archived', ['box 2 archiving 10']])
    kept.keeper.take(assigned('box', 3, { archive: { id: 'a', sha256: 'f'.repeat(64) } }))
    await kept.reported(3)
    kept.host.refuses = 'The archive store is full.'
    kept.keeper.take(assigned('box', 4, { target: 'archived', archive: { id: 'b' } }))
    await kept.reported(4)
    assert.deepEqual(kept.reports.at(-1), {
      sandboxId: 'box',
      generation: 4,
      state: 'stopped',
      refused: 'The archive store is full.',
    })
  })

  test('a sandbox that is only in the store stays archived; a destroy removes its archives there', async () => {
    using kept = startKeeper()
    const archive = { id: 'a', sha256: 'f'.repeat(64) }
    kept.keeper.take(assigned('box', 4, { target: 'archived', archive }))
    kept.keeper.take(assigned('box', 5, { target: 'destroyed', archive }))
    await kept.reported(2)
    assert.deepEqual(kept.said(), ['box 4 archived', 'box 5 destroyed'])
    assert.deepEqual(kept.host.asked, ['destroy box with archives'])
  })

  test('a sandbox that is deleted during its first start is reported as destroyed only when it is removed', async () => {
    using kept = startKeeper()
    const { passed, open } = gate()
    // Like a real host, the fake host runs one verb per sandbox at a time, and lists a new sandbox only when the sandbox has
    // started.
    kept.host.before = async (verb) => {
      await passed
      while (verb === 'destroy' && kept.host.get('box') === undefined) await new Promise(setImmediate)
    }
    kept.keeper.take(assigned('box', 1))
    kept.keeper.take(assigned('box', 2, { target: 'destroyed' }))
    await new Promise(setImmediate)
    assert.deepEqual(kept.said(), [])
    open()
    await kept.reported(1)
    assert.deepEqual([kept.said(), kept.host.list()], [['box 2 destroyed'], []])
    await kept.settled()
    assert.deepEqual([kept.host.asked, kept.host.list()], [['start box 1', 'destroy box'], []])
  })

  test('if an assignment is refused on the host, the report has the reason and the sandbox’s real state', async () => {
    using kept = startKeeper()
    kept.keeper.take(assigned('box', 1))
    await kept.reported(1)
    kept.host.refuses = 'Its memory is in use.'
    kept.keeper.take(assigned('box', 2, { memoryGiB: 0.1 }))
    await kept.reported(2)
    assert.deepEqual(kept.reports.at(-1), {
      sandboxId: 'box',
      generation: 2,
      state: 'started',
      refused: 'Its memory is in use.',
    })
  })

  test('a runner that gets the same assignment again repeats its report, but not the verb', async () => {
    using kept = startKeeper()
    kept.keeper.take(assigned('box', 1))
    await kept.reported(1)
    kept.keeper.take(assigned('box', 1))
    await kept.settled()
    assert.deepEqual(kept.host.asked, ['start box 1'])
    assert.deepEqual(kept.said(), ['box 1 started', 'box 1 started'])
  })

  test('a runner ignores an assignment with an older generation than the sandbox has', async () => {
    using kept = startKeeper()
    kept.keeper.take(assigned('box', 5))
    await kept.reported(1)
    kept.keeper.takeAll(
      [{ assignment: assigned('box', 4, { target: 'destroyed' }), state: 'destroying' }],
      kept.time.now,
    )
    await kept.settled()
    assert.deepEqual(kept.host.asked, ['start box 5'])
  })

  test('a runner carries out an assignment of a newer generation even if the target state has not changed', async () => {
    using kept = startKeeper()
    kept.host.hold(assigned('box', 1), 'started')
    kept.keeper.take(assigned('box', 2, { network: { blockAll: true, allowList: null } }))
    await kept.reported(1)
    assert.deepEqual(kept.host.asked, ['start box 2'])
    assert.equal(kept.host.get('box')?.assignment.network.blockAll, true)
  })

  test('a runner runs one verb per sandbox at a time; of several waiting assignments, it runs only the last', async () => {
    using kept = startKeeper()
    const { passed, open } = gate()
    kept.host.before = (verb) => (verb === 'start' && kept.host.asked.length === 1 ? passed : undefined)
    kept.keeper.take(assigned('box', 1))
    kept.keeper.take(assigned('box', 2, { target: 'stopped' }))
    kept.keeper.take(assigned('box', 3))
    kept.keeper.take(assigned('box', 4, { target: 'stopped' }))
    await new Promise(setImmediate)
    open()
    await kept.reported(1)
    assert.deepEqual(kept.host.asked, ['start box 1', 'stop box 4'])
    assert.deepEqual(kept.said(), ['box 4 stopped'])
  })

  test('a delete or a forced stop interrupts a stop that is waiting for processes to end', async () => {
    for (const change of [{ target: 'destroyed' }, { target: 'stopped', signal: 'SIGKILL' }] as const) {
      using kept = startKeeper()
      kept.host.hold(assigned('box', 1), 'started')
      const { passed, open } = gate()
      kept.host.before = () => (kept.host.asked.length === 1 ? passed : undefined)
      kept.keeper.take(assigned('box', 2, { target: 'stopped' }))
      kept.keeper.take(assigned('box', 3, change))
      await kept.reported(1)
      assert.equal(kept.host.asked.length, 2)
      assert.deepEqual(kept.said(), [`box 3 ${change.target}`])
      open()
      await kept.settled()
      assert.equal(kept.said().at(-1), `box 3 ${change.target}`)
    }
  })

  test('an assignment in the queue of a lane is dropped when a newer assignment for its sandbox arrives', async () => {
    using kept = startKeeper({ atOnce: { work: 1, stops: 1, transfers: 1 } })
    const { passed, open } = gate()
    kept.host.before = () => passed
    kept.host.hold(assigned('box', 1), 'stopped')
    kept.keeper.take(assigned('other', 1))
    kept.keeper.take(assigned('box', 2))
    kept.keeper.take(assigned('box', 3, { target: 'stopped' }))
    open()
    await kept.reported(2)
    await kept.settled()
    assert.deepEqual(kept.host.asked, ['start other 1', 'stop box 3'])
    assert.equal(kept.host.get('box')?.status, 'stopped')
  })

  test('a runner immediately reports a destroy as done if the runner does not have the sandbox', async () => {
    using kept = startKeeper()
    kept.keeper.take(assigned('box', 7, { target: 'destroyed' }))
    assert.deepEqual([kept.said(), kept.host.asked], [['box 7 destroyed'], []])
  })

  test('if a sandbox is not on the host, a stop reports `destroyed`, or `stopped` if its start was queued', async () => {
    using kept = startKeeper({ atOnce: { work: 1, stops: 1, transfers: 1 } })
    kept.keeper.take(assigned('lost', 2, { target: 'stopped' }))
    assert.deepEqual(kept.said(), ['lost 2 destroyed'])
    const { passed, open } = gate()
    kept.host.before = () => passed
    kept.keeper.take(assigned('first', 1))
    kept.keeper.take(assigned('second', 1))
    kept.keeper.take(assigned('second', 2, { target: 'stopped' }))
    open()
    await kept.settled()
    await kept.settled()
    assert.equal(kept.said().includes('second 2 destroyed'), false)
    assert.equal(kept.said().includes('second 2 stopped'), true)
  })
})

suite('keeper: failed verbs', () => {
  test('a runner tries a failed verb again, and reports the verb only when it has succeeded', async () => {
    using kept = startKeeper()
    kept.host.before = () => {
      if (kept.host.asked.length < 3) throw new Error('The disk is full.')
    }
    kept.keeper.take(assigned('box', 1))
    await kept.reported(1)
    assert.deepEqual([kept.host.asked.length, kept.said()], [3, ['box 1 started']])
  })

  test('a verb that fails three times is reported as an error, and is retried only for a newer generation', async () => {
    using kept = startKeeper()
    kept.host.before = () => {
      throw new Error('The disk is full.')
    }
    kept.keeper.take(assigned('box', 1))
    await kept.reported(1)
    assert.deepEqual(kept.reports, [
      { sandboxId: 'box', generation: 1, state: 'error', errorReason: 'The disk is full.', recoverable: true },
    ])
    kept.keeper.takeAll([{ assignment: assigned('box', 1), state: 'error' }], kept.time.now)
    await kept.settled()
    assert.equal(kept.host.asked.length, 3)
    kept.host.before = () => undefined
    kept.keeper.take(assigned('box', 2))
    await kept.reported(2)
    assert.equal(kept.said().at(-1), 'box 2 started')
  })

  test('a start that fails because of files in the sandbox is reported as recoverable, and is not retried', async () => {
    using kept = startKeeper()
    kept.host.before = () => {
      throw new FaultInside('There is a symbolic link.')
    }
    kept.keeper.take(assigned('box', 1))
    await kept.reported(1)
    assert.equal(kept.host.asked.length, 1)
    assert.deepEqual(kept.reports, [
      { sandboxId: 'box', generation: 1, state: 'error', errorReason: 'There is a symbolic link.', recoverable: true },
    ])
  })

  test('a failed pause leaves the sandbox running, and the report to control has the reason', async () => {
    using kept = startKeeper()
    kept.keeper.take(assigned('box', 1))
    await kept.reported(1)
    kept.host.before = () => {
      throw new Error('It does not freeze.')
    }
    kept.keeper.take(assigned('box', 2, { target: 'paused' }))
    await kept.reported(2)
    assert.deepEqual([kept.reports.at(-1)?.state, kept.reports.at(-1)?.refused], ['started', 'It does not freeze.'])
  })

  test('a destroy that fails is tried again until it succeeds', async () => {
    using kept = startKeeper()
    kept.host.hold(assigned('box', 1), 'started')
    kept.host.before = () => {
      if (kept.host.asked.length < 10) throw new Error('busy')
    }
    kept.keeper.take(assigned('box', 2, { target: 'destroyed' }))
    await kept.reported(1)
    assert.deepEqual([kept.host.asked.length, kept.said()], [10, ['box 2 destroyed']])
  })

  test('a destroy that is requested during a sandbox’s first start and fails is retried until it succeeds', async () => {
    using kept = startKeeper()
    const { passed, open } = gate()
    kept.host.before = async (verb) => {
      if (verb === 'start') await passed
      if (kept.host.asked.length < 3) throw new Error('not now')
    }
    kept.keeper.take(assigned('box', 1))
    kept.keeper.take(assigned('box', 2, { target: 'destroyed' }))
    open()
    await kept.reported(1)
    assert.deepEqual(
      [kept.said(), kept.host.asked],
      [['box 2 destroyed'], ['start box 1', 'destroy box', 'destroy box']],
    )
  })

  test('a newer assignment is carried out immediately, even if an older verb is waiting for its retry', async () => {
    using kept = startKeeper({ retryMs: [1e9] })
    kept.host.before = (verb) => {
      if (verb === 'start') throw new Error('no')
    }
    kept.keeper.take(assigned('box', 1))
    await kept.settled()
    kept.keeper.take(assigned('box', 2, { target: 'destroyed' }))
    await kept.reported(1)
    assert.deepEqual(kept.said(), ['box 2 destroyed'])
  })

  test('a restarted runner does not retry a failed verb if control’s list shows the sandbox as an error', async () => {
    using kept = startKeeper()
    kept.host.hold(assigned('box', 3), 'error')
    kept.keeper.takeAll([{ assignment: assigned('box', 3), state: 'error' }], kept.time.now)
    await kept.settled()
    assert.deepEqual([kept.host.asked, kept.said()], [[], []])
  })
})

suite('keeper: sandboxes that end by themselves', () => {
  test('a sandbox that ends by itself is reported as stopped with its cause, and is not started again', async () => {
    using kept = startKeeper()
    kept.keeper.take(assigned('box', 1))
    await kept.reported(1)
    kept.host.endByItself('box', { detail: 'Its first process has ended.' })
    assert.deepEqual(kept.reports.at(-1), {
      sandboxId: 'box',
      generation: 1,
      state: 'stopped',
      cause: { detail: 'Its first process has ended.' },
    })
    kept.keeper.takeAll([{ assignment: assigned('box', 1), state: 'started' }], kept.time.now)
    await kept.settled()
    assert.deepEqual(kept.host.asked, ['start box 1'])
    kept.keeper.take(assigned('box', 2))
    await kept.reported(4)
    assert.equal(kept.said().at(-1), 'box 2 started')
  })

  test('a resize does not start a sandbox that has ended, unless the sandbox is warm', async () => {
    using kept = startKeeper()
    for (const [id, isWarm] of [
      ['box', undefined],
      ['warm', true],
    ] as const) {
      kept.host.hold(assigned(id, 1, isWarm ? { isWarm } : {}), 'stopped', { detail: 'It has ended.' })
      kept.keeper.take(assigned(id, 2, { isRunning: true, memoryGiB: 2 }))
    }
    await kept.reported(2)
    assert.deepEqual([kept.said(), kept.host.asked], [['box 2 stopped', 'warm 2 started'], ['start warm 2']])
  })

  test('a sandbox that ends because its memory ran out is reported as a recoverable error', async () => {
    using kept = startKeeper()
    kept.keeper.take(assigned('box', 1))
    await kept.reported(1)
    kept.host.endByItself('box', { oomKilled: true, detail: 'It ran out of memory.' })
    const { state, errorReason, recoverable } = kept.reports.at(-1)!
    assert.deepEqual([state, errorReason, recoverable], ['error', 'It ran out of memory.', true])
  })

  test('a sandbox that ended by itself is not started when control’s list has a newer generation of it', async () => {
    using kept = startKeeper()
    kept.host.hold(assigned('box', 4), 'stopped', { detail: 'The machine was restarted.' })
    kept.keeper.takeAll([{ assignment: assigned('box', 6), state: 'started' }], kept.time.now)
    await kept.settled()
    assert.deepEqual([kept.host.asked, kept.said()], [[], ['box 6 stopped']])
  })

  test('a sandbox that ended while no runner ran is reported as stopped by the next runner', async () => {
    using kept = startKeeper()
    kept.host.hold(assigned('box', 4), 'stopped', { detail: 'The machine was restarted.' })
    kept.keeper.takeAll([{ assignment: assigned('box', 4), state: 'started' }], kept.time.now)
    await kept.settled()
    assert.deepEqual([kept.host.asked, kept.said()], [[], ['box 4 stopped']])
  })

  test('a sandbox that ended by itself during its start stays stopped; a start that was cut off is repeated', async () => {
    using kept = startKeeper()
    kept.host.hold(assigned('ended', 2), 'stopped', { detail: 'Its first process was ended from outside the sandbox.' })
    kept.host.hold(assigned('cut', 2), 'stopped')
    const listed = ['ended', 'cut'].map((id) => ({ assignment: assigned(id, 2), state: 'restoring' }) as const)
    kept.keeper.takeAll(listed, kept.time.now)
    await kept.settled()
    assert.deepEqual([kept.host.asked, kept.said()], [['start cut 2'], ['ended 2 stopped', 'cut 2 started']])
  })
})

suite('keeper: the list of all sandboxes from control', () => {
  test('if control’s list has an adopted sandbox’s actual state, the runner runs no verb and sends no report', async () => {
    using kept = startKeeper()
    kept.host.hold(assigned('box', 3), 'started')
    kept.keeper.takeAll([{ assignment: assigned('box', 3), state: 'started' }], kept.time.now)
    await kept.settled()
    assert.deepEqual([kept.host.asked, kept.said()], [[], []])
  })

  test('a report is sent again if control’s list does not show the reported state', async () => {
    using kept = startKeeper()
    kept.keeper.take(assigned('box', 3))
    await kept.reported(1)
    kept.keeper.takeAll([{ assignment: assigned('box', 3), state: 'starting' }], kept.time.now)
    kept.keeper.takeAll([{ assignment: assigned('box', 3), state: 'started' }], kept.time.now)
    assert.deepEqual(kept.said(), ['box 3 started', 'box 3 started'])
  })

  test('a list that control made before a sandbox was destroyed does not create the sandbox again', async () => {
    using kept = startKeeper()
    const askedAt = kept.time.now
    kept.time.now += 10
    kept.keeper.take(assigned('box', 2, { target: 'destroyed' }))
    kept.keeper.takeAll([], askedAt)
    kept.keeper.takeAll([{ assignment: assigned('box', 1), state: 'started' }], askedAt)
    await kept.settled()
    assert.deepEqual([kept.host.asked, kept.said()], [[], ['box 2 destroyed']])
  })

  test('the runner removes a sandbox only after it has been missing in control’s lists for `strangerGraceMs`', async () => {
    using kept = startKeeper({ strangerGraceMs: 10 * minutes })
    kept.host.hold(assigned('stranger', 1), 'started')
    for (const later of [0, 1, 4, 4]) {
      kept.time.now += later * minutes
      kept.keeper.takeAll([], kept.time.now)
    }
    await kept.settled()
    assert.deepEqual(kept.host.asked, [])
    kept.time.now += 1 * minutes
    kept.keeper.takeAll([], kept.time.now)
    await kept.settled()
    assert.deepEqual([kept.host.asked, kept.said()], [['destroy stranger'], []])
  })

  test('if control lists a missing sandbox again, the runner forgets how long the sandbox was missing', async () => {
    using kept = startKeeper({ strangerGraceMs: 10 * minutes })
    kept.host.hold(assigned('box', 1), 'started')
    const listed = [{ assignment: assigned('box', 1), state: 'started' as const }]
    kept.keeper.takeAll([], kept.time.now)
    kept.time.now += 9 * minutes
    kept.keeper.takeAll(listed, kept.time.now)
    kept.time.now += 9 * minutes
    kept.keeper.takeAll([], kept.time.now)
    kept.time.now += 9 * minutes
    kept.keeper.takeAll([], kept.time.now)
    await kept.settled()
    assert.deepEqual(kept.host.asked, [])
  })

  test('a runner does not touch a sandbox whose record in control’s list is unreadable', async () => {
    using kept = startKeeper({ strangerGraceMs: 0 })
    kept.host.hold(assigned('unread', 1), 'started')
    for (let times = 0; times < 2; times += 1) kept.keeper.takeAll([{ sandboxId: 'unread' }], kept.time.now)
    await kept.settled()
    assert.deepEqual([kept.host.asked, kept.said()], [[], []])
  })

  test('a sandbox assigned after the request for control’s list is not removed if the list lacks the sandbox', async () => {
    using kept = startKeeper({ strangerGraceMs: 0 })
    const askedAt = kept.time.now - 1
    kept.keeper.take(assigned('box', 1))
    await kept.reported(1)
    kept.keeper.takeAll([], askedAt)
    kept.keeper.takeAll([], askedAt)
    await kept.settled()
    assert.deepEqual(kept.host.asked, ['start box 1'])
  })
})
