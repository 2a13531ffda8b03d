import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Problem } from '#src/problems.ts'
import { type SandboxState, sandboxStates } from '#src/wire/sandbox-state.ts'
import {
  afterRefusal,
  afterReport,
  checkForkable,
  findMove,
  holdsOf,
  isAlreadyDone,
  isClaim,
  isMeant,
  isRunning,
  moveFor,
  moves,
  refusals,
  settlements,
  stateRows,
  type Verb,
  verbs,
} from './lifecycle.ts'

type Answer = 'moves' | 'already' | 400 | 404 | 409

const answerTo = (verb: Verb, state: SandboxState): Answer => {
  if (isAlreadyDone(verb, state)) return 'already'
  try {
    if (verb === 'fork') checkForkable({ id: 'box', state })
    else moveFor(verb, { id: 'box', state })
    return 'moves'
  } catch (error) {
    assert.ok(error instanceof Problem)
    return error.status as Answer
  }
}

/** The expected answer for every state and verb, in the order of `verbs`. For a fork, the state is the parent's. */
const expected: Record<SandboxState, Answer[]> = {
  creating: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
  restoring: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
  destroyed: [404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404],
  destroying: [404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404],
  started: [
    400,
    'moves',
    'moves',
    'moves',
    'already',
    'moves',
    'moves',
    'moves',
    'moves',
    'moves',
    400,
    400,
    'moves',
    400,
    400,
    400,
  ],
  stopped: [
    400,
    400,
    400,
    'moves',
    'moves',
    'already',
    400,
    'moves',
    'moves',
    'moves',
    400,
    400,
    'moves',
    400,
    400,
    400,
  ],
  starting: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
  stopping: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
  error: [400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 'moves', 'moves', 'moves', 400, 400, 400],
  build_failed: [400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 'moves', 400, 400, 400],
  pending_build: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 'moves', 'moves'],
  building_snapshot: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 'moves', 409],
  unknown: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
  pulling_snapshot: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
  archived: [400, 400, 400, 400, 'moves', 400, 400, 'already', 400, 400, 400, 400, 'moves', 400, 400, 400],
  archiving: [409, 409, 409, 409, 'moves', 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
  resizing: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
  snapshotting: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
  forking: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
  pausing: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
  paused: [
    400,
    400,
    400,
    'moves',
    'moves',
    'moves',
    'already',
    'moves',
    'moves',
    'moves',
    400,
    400,
    'moves',
    400,
    400,
    400,
  ],
  resuming: [409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 409, 'moves', 409, 409, 409],
}

suite('the states of a sandbox', () => {
  for (const state of sandboxStates) {
    test(`each verb has the expected result while a sandbox is ${state}`, () => {
      assert.deepEqual(
        verbs.map((verb) => answerTo(verb, state)),
        expected[state],
      )
    })
  }

  test('a verb of a sandbox has at most one move from each state', () => {
    const pairs = moves.map(([on, from]) => `${on} ${from}`)
    assert.equal(new Set(pairs).size, pairs.length)
  })

  test('every move except a claim passes through a state with a time limit, and ends in a state without', () => {
    for (const [on, from] of moves) {
      const move = findMove(on, from)
      assert.ok(move)
      if (on === 'claim') continue
      assert.equal(stateRows[move.through].settled, false)
      assert.notEqual(stateRows[move.through].stuckAfterSeconds, null)
      assert.equal(stateRows[move.to].settled, true)
    }
  })

  test('a claim leaves a sandbox `started`; only the verbs `claim` and `claim-resizing` are claims', () => {
    assert.deepEqual(findMove('claim', 'started'), { on: 'claim', from: 'started', through: 'started', to: 'started' })
    const led = moves.filter(([, from, through]) => isClaim(from, through)).map(([on]) => on)
    assert.deepEqual(led, ['claim', 'claim-resizing'])
  })

  test('a runner’s report can complete each move of a sandbox, and a report of `error` ends each move', () => {
    for (const [, , through, to] of moves) {
      // In these two states a sandbox has no runner, so no runner reports about the sandbox. Reports about its image end these
      // states.
      if (through === 'pending_build' || through === 'building_snapshot') continue
      // Two moves end without a report about the sandbox. A report about the image ends `snapshotting`. A claim without a resize
      // begins and ends in `started`.
      const isOver = through === 'snapshotting' || through === to
      if (!isOver) assert.equal(afterReport(through, to, to), to)
      assert.equal(afterReport(through, to, 'error'), 'error')
      assert.equal(isMeant(through, to), true)
    }
  })

  test('`delete` has a move from every state of a sandbox but `destroying` and `destroyed`', () => {
    for (const state of sandboxStates) {
      if (state === 'destroyed' || state === 'destroying') continue
      assert.deepEqual(findMove('delete', state)?.to, 'destroyed', state)
    }
  })

  test('a sandbox’s states with a time limit are exactly those in which a move is under way', () => {
    for (const state of sandboxStates) {
      const row = stateRows[state]
      assert.equal(row.stuckAfterSeconds === null, row.settled, state)
      assert.equal(row.whenStuck === null, row.settled, state)
    }
  })
})

/** States in which a sandbox uses compute and disk of its organization's quota, written out by hand. */
const computeAndDisk: SandboxState[] = [
  ...(['creating', 'restoring', 'started', 'starting', 'stopping', 'pausing', 'paused', 'resuming'] as const),
  ...(['resizing', 'snapshotting', 'forking', 'pulling_snapshot', 'destroying', 'error', 'unknown'] as const),
]
const diskOnly: SandboxState[] = ['stopped', 'archiving']

suite('what a sandbox uses of its organization’s quota', () => {
  for (const state of sandboxStates)
    test(`a sandbox in the state ${state} uses the expected part of its organization’s quota`, () => {
      assert.deepEqual(holdsOf(state, 'started'), {
        holdsCompute: computeAndDisk.includes(state),
        holdsDisk: computeAndDisk.includes(state) || diskOnly.includes(state),
      })
    })

  test('during a resize or snapshot, a stopped sandbox uses disk but no compute of its organization’s quota', () => {
    for (const state of ['resizing', 'snapshotting'] as const)
      assert.deepEqual(holdsOf(state, 'stopped'), { holdsCompute: false, holdsDisk: true })
  })
})

const words = ['started', 'stopped', 'paused', 'archived', 'destroyed', 'error'] as const

suite('reports of a runner', () => {
  test('if a sandbox ends immediately after its start, the report `stopped` alone completes the start', () => {
    for (const state of ['creating', 'forking', 'starting', 'restoring', 'resuming'] as const) {
      assert.equal(afterReport(state, 'started', 'stopped'), 'stopped')
    }
  })

  test('while a sandbox is stopping or being destroyed, late reports of earlier states change nothing', () => {
    assert.equal(afterReport('stopping', 'stopped', 'started'), undefined)
    assert.equal(afterReport('destroying', 'destroyed', 'started'), undefined)
    assert.equal(afterReport('destroying', 'destroyed', 'stopped'), undefined)
  })

  test('a sandbox that ends by itself becomes `stopped`; a sandbox that its runner lost becomes `error`', () => {
    assert.equal(afterReport('started', 'started', 'stopped'), 'stopped')
    assert.equal(afterReport('started', 'started', 'destroyed'), 'error')
    assert.equal(afterReport('stopped', 'stopped', 'destroyed'), 'error')
  })

  test('in `error`, a report changes a sandbox’s state only if the reported state is the desired state', () => {
    assert.equal(afterReport('error', 'started', 'started'), 'started')
    assert.equal(afterReport('error', 'destroyed', 'destroyed'), 'destroyed')
    assert.equal(afterReport('error', 'started', 'stopped'), undefined)
    assert.equal(afterReport('error', 'destroyed', 'started'), undefined)
  })

  test('a repeated report of a sandbox’s state changes nothing', () => {
    assert.equal(afterReport('started', 'started', 'started'), undefined)
    assert.equal(afterReport('stopped', 'stopped', 'stopped'), undefined)
    assert.equal(afterReport('destroyed', 'destroyed', 'destroyed'), undefined)
  })

  test('no report brings a destroyed sandbox back', () => {
    for (const reported of words) {
      assert.equal(afterReport('destroyed', 'destroyed', reported), undefined)
      if (reported !== 'destroyed' && reported !== 'error') {
        assert.equal(afterReport('destroying', 'destroyed', reported), undefined)
      }
      assert.equal(afterRefusal('destroying', reported), undefined)
    }
  })

  test('no report makes a sandbox `started` if its desired state is not `started`', () => {
    for (const state of sandboxStates) {
      for (const desired of ['stopped', 'paused', 'archived', 'destroyed'] as const) {
        assert.notEqual(afterReport(state, desired, 'started'), 'started', `${state}, wanted ${desired}`)
      }
    }
  })

  test('a runner’s report or refusal leads only to states in which a sandbox may stay forever', () => {
    for (const state of sandboxStates) {
      for (const to of Object.values(settlements[state])) assert.equal(stateRows[to].settled, true)
      for (const to of refusals[state] ?? []) assert.equal(stateRows[to].settled, true)
    }
  })

  test('a report that a `snapshotting` sandbox ended is applied; a report of its earlier state is ignored', () => {
    for (const was of ['started', 'stopped', 'paused'] as const) {
      assert.equal(afterReport('snapshotting', was, was), undefined)
    }
    assert.equal(afterReport('snapshotting', 'started', 'stopped'), 'stopped')
    assert.equal(afterReport('snapshotting', 'paused', 'error'), 'error')
  })

  test('if a runner refuses a move, the sandbox returns to its state before the move', () => {
    for (const [, from, through] of moves) {
      if (from === null || through === 'starting' || through === 'stopping') continue
      if (['destroying', 'snapshotting', 'building_snapshot', 'creating', 'started'].includes(through)) continue
      assert.equal(afterRefusal(through, from as 'started'), from, `${through} from ${from}`)
    }
    assert.equal(afterRefusal('resizing', 'error'), undefined)
    assert.equal(afterRefusal('creating', 'stopped'), undefined)
  })

  test('the toolbox works while a sandbox runs, even during its resize or snapshot', () => {
    const running = sandboxStates.filter((state) => isRunning(state, 'started'))
    assert.deepEqual(running, ['started', 'resizing', 'snapshotting'])
    assert.equal(isRunning('resizing', 'paused'), false)
    assert.equal(isRunning('snapshotting', 'stopped'), false)
  })
})
