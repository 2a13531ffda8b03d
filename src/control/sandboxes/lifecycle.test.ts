import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Problem } from '#src/problems.ts'
import { type SandboxState, sandboxStates } from '#src/wire/sandbox-state.ts'
import { afterReport, findMove, isAlreadyDone, moveFor, moves, stateRows, type Verb, verbs } from './lifecycle.ts'

type Answer = 'moves' | 'already' | 400 | 404 | 409

const answerTo = (verb: Verb, state: SandboxState): Answer => {
  if (isAlreadyDone(verb, state)) return 'already'
  try {
    moveFor(verb, state)
    return 'moves'
  } catch (error) {
    assert.ok(error instanceof Problem)
    return error.status as Answer
  }
}

/** The whole of state × verb, written out by hand: create, start, stop, delete, recover, recover-stopped. */
const expected: Record<SandboxState, [Answer, Answer, Answer, Answer, Answer, Answer]> = {
  creating: [409, 409, 409, 'moves', 409, 409],
  restoring: [409, 409, 409, 'moves', 409, 409],
  destroyed: [404, 404, 404, 404, 404, 404],
  destroying: [404, 404, 404, 404, 404, 404],
  started: [400, 'already', 'moves', 'moves', 400, 400],
  stopped: [400, 'moves', 'already', 'moves', 400, 400],
  starting: [409, 409, 409, 'moves', 409, 409],
  stopping: [409, 409, 409, 'moves', 409, 409],
  error: [400, 400, 400, 'moves', 'moves', 'moves'],
  build_failed: [400, 400, 400, 'moves', 400, 400],
  pending_build: [409, 409, 409, 'moves', 409, 409],
  building_snapshot: [409, 409, 409, 'moves', 409, 409],
  unknown: [409, 409, 409, 'moves', 409, 409],
  pulling_snapshot: [409, 409, 409, 'moves', 409, 409],
  archived: [400, 400, 400, 'moves', 400, 400],
  archiving: [409, 409, 409, 'moves', 409, 409],
  resizing: [409, 409, 409, 'moves', 409, 409],
  snapshotting: [409, 409, 409, 'moves', 409, 409],
  forking: [409, 409, 409, 'moves', 409, 409],
  pausing: [409, 409, 409, 'moves', 409, 409],
  paused: [400, 400, 400, 'moves', 400, 400],
  resuming: [409, 409, 409, 'moves', 409, 409],
}

suite('the life of a sandbox', () => {
  for (const state of sandboxStates) {
    test(`every verb has one answer while ${state}`, () => {
      assert.deepEqual(
        verbs.map((verb) => answerTo(verb, state)),
        expected[state],
      )
    })
  }

  test('a verb has at most one move from a state', () => {
    const pairs = moves.map(([on, from]) => `${on} ${from}`)
    assert.equal(new Set(pairs).size, pairs.length)
  })

  test('every move passes through a state that is watched, and ends in two that are settled', () => {
    for (const [on, from] of moves) {
      const move = findMove(on, from)
      assert.ok(move)
      assert.equal(stateRows[move.through].settled, false)
      assert.notEqual(stateRows[move.through].stuckAfterSeconds, null)
      assert.equal(stateRows[move.to].settled, true)
      assert.equal(stateRows[move.failing].settled, true)
    }
  })

  test('a runner can end every move both ways', () => {
    for (const [, , through, to, failing] of moves) {
      assert.equal(afterReport(through, to, to), to)
      assert.equal(afterReport(through, to, 'error'), failing)
    }
  })

  test('a state that passes is bounded in time, and one that is settled is not', () => {
    for (const state of sandboxStates) {
      const row = stateRows[state]
      assert.equal(row.stuckAfterSeconds === null, row.settled, state)
      assert.equal(row.whenStuck === null, row.settled, state)
    }
  })
})

suite('what a runner says', () => {
  test('a start in progress is not ended by hearing what was before', () => {
    assert.equal(afterReport('starting', 'started', 'stopped'), undefined)
    assert.equal(afterReport('stopping', 'stopped', 'started'), undefined)
    assert.equal(afterReport('destroying', 'destroyed', 'started'), undefined)
    assert.equal(afterReport('destroying', 'destroyed', 'stopped'), undefined)
  })

  test('a sandbox that ends by itself is stopped, and one that is lost is an error', () => {
    assert.equal(afterReport('started', 'started', 'stopped'), 'stopped')
    assert.equal(afterReport('started', 'started', 'destroyed'), 'error')
    assert.equal(afterReport('stopped', 'stopped', 'destroyed'), 'error')
  })

  test('a late success heals an error, and nothing but what was wanted does', () => {
    assert.equal(afterReport('error', 'started', 'started'), 'started')
    assert.equal(afterReport('error', 'destroyed', 'destroyed'), 'destroyed')
    assert.equal(afterReport('error', 'started', 'stopped'), undefined)
    assert.equal(afterReport('error', 'destroyed', 'started'), undefined)
  })

  test('hearing the same twice changes nothing', () => {
    assert.equal(afterReport('started', 'started', 'started'), undefined)
    assert.equal(afterReport('stopped', 'stopped', 'stopped'), undefined)
    assert.equal(afterReport('destroyed', 'destroyed', 'destroyed'), undefined)
  })

  test('what is destroyed never comes back', () => {
    for (const reported of ['started', 'stopped', 'destroyed', 'error'] as const) {
      assert.equal(afterReport('destroyed', 'destroyed', reported), undefined)
    }
  })
})
