// The whole life of a sandbox. What is not in these tables cannot happen.
//
// `moves` says what a verb may do, `stateRows` what each state means, `settlements` what a runner's word changes.
// Everything that needs to know about states (the API, quota, timers, placement, the reference page) reads them here.
import { noSandbox, Problem } from '#src/problems.ts'
import type { Report, Target } from '#src/wire/runner-link.ts'
import type { DesiredState, SandboxState } from '#src/wire/sandbox-state.ts'

export const verbs = [
  'create',
  'claim',
  'claim-resizing',
  'fork',
  'start',
  'stop',
  'pause',
  'archive',
  'resize',
  'snapshot',
  'recover',
  'recover-stopped',
  'delete',
  'build',
  'place',
  'begin-build',
] as const

export type Verb = (typeof verbs)[number]

type MoveRow = readonly [
  on: Verb,
  from: SandboxState | null,
  through: SandboxState,
  to: Target & SandboxState & DesiredState,
]

/**
 * Verbs as rows. The runner is asked for the state in `to`; `from: null` is "not there yet", for a fork: the child. Where one ends
 * that does not get there depends on what it passes through: `settlements`, `refusals` and `whenStuck` below.
 */
export const moves = [
  // on      from       through     to
  ['create', null, 'creating', 'started'],
  // It waits for its image, then for a runner that has it.
  ['build', null, 'pending_build', 'started'],
  ['begin-build', 'pending_build', 'building_snapshot', 'started'],
  ['place', 'pending_build', 'creating', 'started'],
  ['place', 'building_snapshot', 'creating', 'started'],
  // A sandbox of a warm pool becomes the one that a caller creates; in another size it may turn out that it cannot.
  ['claim', 'started', 'started', 'started'],
  ['claim-resizing', 'started', 'creating', 'started'],
  ['fork', null, 'forking', 'started'],
  ['start', 'stopped', 'starting', 'started'],
  ['start', 'paused', 'resuming', 'started'],
  ['start', 'archived', 'restoring', 'started'],
  // The runner breaks the archive off and starts from the disk, or restores it where the disk has gone already.
  ['start', 'archiving', 'starting', 'started'],
  ['stop', 'started', 'stopping', 'stopped'],
  ['stop', 'paused', 'stopping', 'stopped'],
  ['pause', 'started', 'pausing', 'paused'],
  ['archive', 'started', 'archiving', 'archived'],
  ['archive', 'stopped', 'archiving', 'archived'],
  ['archive', 'paused', 'archiving', 'archived'],
  ['resize', 'started', 'resizing', 'started'],
  ['resize', 'stopped', 'resizing', 'stopped'],
  ['resize', 'paused', 'resizing', 'paused'],
  ['snapshot', 'started', 'snapshotting', 'started'],
  ['snapshot', 'stopped', 'snapshotting', 'stopped'],
  ['snapshot', 'paused', 'snapshotting', 'paused'],
  ['recover', 'error', 'starting', 'started'],
  ['recover-stopped', 'error', 'stopping', 'stopped'],
  ['delete', 'creating', 'destroying', 'destroyed'],
  ['delete', 'restoring', 'destroying', 'destroyed'],
  ['delete', 'started', 'destroying', 'destroyed'],
  ['delete', 'stopped', 'destroying', 'destroyed'],
  ['delete', 'starting', 'destroying', 'destroyed'],
  ['delete', 'stopping', 'destroying', 'destroyed'],
  ['delete', 'error', 'destroying', 'destroyed'],
  ['delete', 'build_failed', 'destroying', 'destroyed'],
  ['delete', 'pending_build', 'destroying', 'destroyed'],
  ['delete', 'building_snapshot', 'destroying', 'destroyed'],
  ['delete', 'unknown', 'destroying', 'destroyed'],
  ['delete', 'pulling_snapshot', 'destroying', 'destroyed'],
  ['delete', 'archived', 'destroying', 'destroyed'],
  ['delete', 'archiving', 'destroying', 'destroyed'],
  ['delete', 'resizing', 'destroying', 'destroyed'],
  ['delete', 'snapshotting', 'destroying', 'destroyed'],
  ['delete', 'forking', 'destroying', 'destroyed'],
  ['delete', 'pausing', 'destroying', 'destroyed'],
  ['delete', 'paused', 'destroying', 'destroyed'],
  ['delete', 'resuming', 'destroying', 'destroyed'],
] as const satisfies readonly MoveRow[]

export type Move = {
  on: Verb
  from: SandboxState | null
  through: SandboxState
  to: Target & SandboxState & DesiredState
}

/** Verbs that find their work already done: they answer the record and change nothing. */
export const alreadyDone = [
  ['start', 'started'],
  ['stop', 'stopped'],
  ['pause', 'paused'],
  ['archive', 'archived'],
] as const satisfies readonly (readonly [Verb, SandboxState])[]

/** The states of a parent that can be forked; the fork leaves it as it is. */
export const forkableStates = ['started', 'stopped', 'paused'] as const satisfies readonly SandboxState[]

type StateRow = {
  /** Nothing is under way. */
  settled: boolean
  /** Counts against the cpu and memory of its runner. */
  holdsCompute: boolean
  /** Counts against the disk of its runner. */
  holdsDisk: boolean
  /** How long it may stay before somebody must look; `null`: as long as it likes. */
  stuckAfterSeconds: number | null
  /**
   * What happens then. `error`: it becomes `error`, recoverable; `build_failed`: that; `retry`: the runner is asked again,
   * without end.
   */
  whenStuck: 'error' | 'build_failed' | 'retry' | null
}

const settled = (holdsCompute: boolean, holdsDisk: boolean): StateRow => ({
  settled: true,
  holdsCompute,
  holdsDisk,
  stuckAfterSeconds: null,
  whenStuck: null,
})

const passing = (stuckAfterSeconds: number, whenStuck: 'error' | 'retry' = 'error'): StateRow => ({
  settled: false,
  holdsCompute: true,
  holdsDisk: true,
  stuckAfterSeconds,
  whenStuck,
})

const awaiting: StateRow = { ...passing(3600), holdsCompute: false, holdsDisk: false, whenStuck: 'build_failed' }

/** They have no runner yet, and go on, or end, with their image. */
export const statesAwaitingImage = ['pending_build', 'building_snapshot'] as const satisfies SandboxState[]

export const stateRows: Record<SandboxState, StateRow> = {
  creating: passing(300),
  restoring: passing(1800),
  destroyed: settled(false, false),
  destroying: passing(60, 'retry'),
  started: settled(true, true),
  stopped: settled(false, true),
  starting: passing(120),
  stopping: passing(90),
  // May still have processes on its host: nobody knows until it is recovered or deleted.
  error: settled(true, true),
  build_failed: settled(false, false),
  // Until its image is there, and a runner that has room for it.
  pending_build: awaiting,
  // A runner has begun with its image: clients begin to read its build log now.
  building_snapshot: awaiting,
  unknown: passing(300),
  pulling_snapshot: passing(1800),
  archived: settled(false, false),
  archiving: { ...passing(3600), holdsCompute: false },
  resizing: passing(120),
  snapshotting: passing(1800),
  forking: passing(600),
  pausing: passing(60),
  paused: settled(true, true),
  resuming: passing(120),
}

const statesWhere = (is: (row: StateRow) => boolean): SandboxState[] =>
  (Object.entries(stateRows) as [SandboxState, StateRow][]).filter(([, row]) => is(row)).map(([state]) => state)

export const statesHoldingCompute = statesWhere((row) => row.holdsCompute)
export const statesHoldingDisk = statesWhere((row) => row.holdsDisk)
export const statesUnderWay = statesWhere((row) => !row.settled)

/**
 * What is done to one that rests and leaves it resting: its state as it passes and the one that is wanted. Nothing runs in it
 * meanwhile, so that its organization is not charged for that. A runner keeps room all the same.
 */
const restingMoves: (readonly [through: SandboxState, desired: DesiredState])[] = moves
  .filter(([, from, , to]) => from === to && !stateRows[to].holdsCompute)
  .map(([, , through, to]) => [through, to])

/** What it counts for against the quota of its organization. */
export const holdsOf = (state: SandboxState, desired: DesiredState): Pick<StateRow, 'holdsCompute' | 'holdsDisk'> => {
  const { holdsCompute, holdsDisk } = stateRows[state]
  const isResting = restingMoves.some(([through, to]) => through === state && to === desired)
  return { holdsCompute: holdsCompute && !isResting, holdsDisk }
}

const asMove = ([on, from, through, to]: (typeof moves)[number]): Move => ({ on, from, through, to })

export const findMove = (on: Verb, from: SandboxState | null): Move | undefined => {
  const row = moves.find((each) => each[0] === on && each[1] === from)
  return row && asMove(row)
}

export const isAlreadyDone = (on: Verb, state: SandboxState): boolean =>
  alreadyDone.some(([verb, done]) => verb === on && done === state)

/** A move that must be in the table. */
export const moveFrom = (on: Verb, from: SandboxState | null): Move => {
  const move = findMove(on, from)
  if (!move) throw new Error(`there is no ${on} from ${from}`)
  return move
}

type SandboxInState = { id: string; state: SandboxState }

/** The one move that a verb makes from a state; throws the sentence that a caller reads when there is none. */
export const moveFor = (on: Verb, { id, state }: SandboxInState): Move => {
  const move = findMove(on, state)
  if (move) return move
  throw refusal(on, { id, state })
}

/** Throws the sentence that a caller reads when a sandbox cannot be forked now. */
export const checkForkable = (sandbox: SandboxInState): void => {
  if (!(forkableStates as readonly SandboxState[]).includes(sandbox.state)) throw refusal('fork', sandbox)
}

const refusal = (on: Verb, { id, state: from }: SandboxInState): Problem => {
  if (from === 'destroyed' || from === 'destroying') return noSandbox(id)
  if (!stateRows[from].settled) {
    return new Problem('changing', `The sandbox is ${from}; wait until that has ended, or delete it.`)
  }
  const instead = on === 'start' && from === 'error' ? '; recover it instead' : ''
  return new Problem('bad_request', `A sandbox that is ${from} cannot ${said[on]}${instead}.`)
}

const said: Record<Verb, string> = {
  create: 'be created again',
  claim: 'be claimed',
  'claim-resizing': 'be claimed',
  fork: 'be forked',
  build: 'be created again',
  place: 'be placed',
  'begin-build': 'be built',
  start: 'be started',
  stop: 'be stopped',
  pause: 'be paused',
  archive: 'be archived',
  resize: 'be resized',
  snapshot: 'become a snapshot',
  delete: 'be deleted',
  recover: 'be recovered: only one in the state error can',
  'recover-stopped': 'be recovered: only one in the state error can',
}

/** Processes run in it, and its toolbox answers: also while something is done to it that does not stop them. */
export const isRunning = (state: SandboxState, desired: DesiredState): boolean =>
  state === 'started' || ((state === 'resizing' || state === 'snapshotting') && desired === 'started')

type Settlement = Partial<Record<Report['state'], SandboxState>>

const lost = { error: 'error', destroyed: 'error' } as const satisfies Settlement

/** What a runner's word about the current generation changes. Absent: it tells what we know, or what is not final yet. */
export const settlements: Record<SandboxState, Settlement> = {
  // It may have started and ended by itself before anybody heard of either.
  creating: { started: 'started', stopped: 'stopped', ...lost },
  forking: { started: 'started', stopped: 'stopped', ...lost },
  pulling_snapshot: { started: 'started', stopped: 'stopped', ...lost },
  starting: { started: 'started', stopped: 'stopped', ...lost },
  restoring: { started: 'started', stopped: 'stopped', ...lost },
  // The memory may be gone: the host was restarted.
  resuming: { started: 'started', stopped: 'stopped', ...lost },
  pausing: { paused: 'paused', stopped: 'stopped', ...lost },
  stopping: { stopped: 'stopped', ...lost },
  archiving: { archived: 'archived', ...lost },
  resizing: { started: 'started', stopped: 'stopped', paused: 'paused', ...lost },
  // Ends with its image (runner-link/image-reports.ts), unless the sandbox ends first.
  snapshotting: { stopped: 'stopped', ...lost },
  destroying: { destroyed: 'destroyed', error: 'error' },
  // It ended by itself: its first process died, or its host was restarted.
  started: { stopped: 'stopped', ...lost },
  paused: { stopped: 'stopped', ...lost },
  stopped: lost,
  unknown: { started: 'started', stopped: 'stopped', paused: 'paused', archived: 'archived', ...lost },
  // Nothing of it is on a runner. One that waits for its image goes on with that (runner-link/image-reports.ts).
  pending_build: {},
  building_snapshot: {},
  archived: {},
  build_failed: {},
  destroyed: {},
  // Only to what was wanted: see `afterReport`.
  error: {},
}

/** It may still turn out to have the size of before: a resize is under way, was given up, or is recovered from that. */
export const statesOfResize: SandboxState[] = ['resizing', 'error', 'starting', 'stopping']

/** Where a sandbox is when its runner would not do what it was asked, and left the sandbox well. */
export const refusals: Partial<Record<SandboxState, readonly Report['state'][]>> = {
  starting: ['stopped', 'archived'],
  restoring: ['archived'],
  resuming: ['paused', 'stopped'],
  pausing: ['started', 'stopped'],
  stopping: ['archived'],
  archiving: ['started', 'stopped', 'paused'],
  resizing: ['started', 'stopped', 'paused'],
}

/**
 * The state after a report, or `undefined` where it changes nothing. Out of `error` a report leads only to what was
 * wanted: a runner that comes back late may still have done what it was asked.
 */
export const afterReport = (
  state: SandboxState,
  desired: DesiredState,
  reported: Report['state'],
): SandboxState | undefined => {
  if (state === 'error') return reported === desired ? reported : undefined
  if (state === 'snapshotting' && reported === desired) return undefined
  const to = settlements[state][reported]
  return (to === 'started' || to === 'paused') && to !== desired ? undefined : to
}

/** The state after a refusal, or `undefined` where none can be. */
export const afterRefusal = (state: SandboxState, reported: Report['state']): SandboxState | undefined =>
  refusals[state]?.includes(reported) ? reported : undefined

/** From nobody's to somebody's: no other move leads this way. */
export const isClaim = (from: SandboxState | null, to: SandboxState): boolean =>
  moves.some(([on, before, through]) => on.startsWith('claim') && before === from && through === to)

/** Whether a move through this state was meant to end there: else its runner must be told what is wanted now. */
export const isMeant = (through: SandboxState, state: SandboxState): boolean =>
  moves.some((move) => move[2] === through && move[3] === state)
