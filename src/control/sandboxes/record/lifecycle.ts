// All states of a sandbox, and all moves between them; other moves cannot happen. `moves`: what a verb may do. `stateRows`: what
// each state means. `settlements`: what a runner's report changes. All code that depends on states reads these tables.
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
 * Each row: verb, state before, state on the way (`through`), state after. `null`: the sandbox does not exist yet. If a
 * move fails, its `through` state decides where the sandbox ends: see `settlements`, `refusals` and `whenStuck`.
 */
export const moves = [
  ['create', null, 'creating', 'started'],
  // The sandbox waits for its image, then for a runner that has the image.
  ['build', null, 'pending_build', 'started'],
  ['begin-build', 'pending_build', 'building_snapshot', 'started'],
  ['place', 'pending_build', 'creating', 'started'],
  ['place', 'building_snapshot', 'creating', 'started'],
  // A claim gives a warm sandbox to a caller. If the caller wants another size, the sandbox passes through `creating`, because the
  // runner may refuse.
  ['claim', 'started', 'started', 'started'],
  ['claim-resizing', 'started', 'creating', 'started'],
  ['fork', null, 'forking', 'started'],
  ['start', 'stopped', 'starting', 'started'],
  ['start', 'paused', 'resuming', 'started'],
  ['start', 'archived', 'restoring', 'started'],
  // The runner cancels the archive and starts the sandbox from its disk. If the disk is gone already, the runner restores the
  // archive.
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

/**
 * Verbs on sandboxes that are in the wanted state already. A call of such a verb returns the sandbox's record and changes nothing.
 */
export const alreadyDone = [
  ['start', 'started'],
  ['stop', 'stopped'],
  ['pause', 'paused'],
  ['archive', 'archived'],
] as const satisfies readonly (readonly [Verb, SandboxState])[]

/** The states in which a sandbox can be forked. A fork does not change its parent. */
export const forkableStates = ['started', 'stopped', 'paused'] as const satisfies readonly SandboxState[]

type StateRow = {
  /** True if the sandbox can stay in this state: no move is under way. */
  settled: boolean
  /** True if the sandbox uses cpu and memory of its runner in this state. */
  holdsCompute: boolean
  holdsDisk: boolean
  /** Seconds in this state after which the sandbox is treated as stuck. `null`: never. */
  stuckAfterSeconds: number | null
  /** What control does with a stuck sandbox. `error`, `build_failed`: sets this state. `retry`: asks the runner without end. */
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

/**
 * States in which the sandbox has no runner and waits for its image. If the image cannot be made, the sandbox becomes
 * `build_failed`.
 */
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
  // In `error`, processes may still run on the host. So the sandbox still counts as using its CPU, memory and disk.
  error: settled(true, true),
  build_failed: settled(false, false),
  // The sandbox waits for its image, and for a runner with room.
  pending_build: awaiting,
  // A runner has begun to make the image. Clients start to read the build log in this state.
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
 * The moves that keep a stopped sandbox stopped: resize and snapshot. During such a move, the quota counts no CPU and memory, but
 * both are reserved on the runner.
 */
const restingMoves: (readonly [through: SandboxState, desired: DesiredState])[] = moves
  .filter(([, from, , to]) => from === to && !stateRows[to].holdsCompute)
  .map(([, , through, to]) => [through, to])

/** Returns whether a sandbox in this state uses compute and disk of its organization's quota. */
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

/** Returns the move of a verb from a state. Throws if the table has no such move. */
export const moveFrom = (on: Verb, from: SandboxState | null): Move => {
  const move = findMove(on, from)
  if (!move) throw new Error(`there is no ${on} from ${from}`)
  return move
}

type SandboxInState = { id: string; state: SandboxState }

/** Returns the move of a verb from a state. Throws the error for the caller if the table has no such move. */
export const moveFor = (on: Verb, { id, state }: SandboxInState): Move => {
  const move = findMove(on, state)
  if (move) return move
  throw refusal(on, { id, state })
}

/** Throws the error for the caller if the sandbox cannot be forked in its present state. */
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

/**
 * Returns whether processes run in the sandbox and its toolbox answers. True also during a resize or snapshot of a
 * started sandbox.
 */
export const isRunning = (state: SandboxState, desired: DesiredState): boolean =>
  state === 'started' || ((state === 'resizing' || state === 'snapshotting') && desired === 'started')

type Settlement = Partial<Record<Report['state'], SandboxState>>

const lost = { error: 'error', destroyed: 'error' } as const satisfies Settlement

/**
 * For each state: which states a runner may report, and which state control then writes. Control ignores all other
 * reports, and refuses reports about an older generation. For `error`, see `afterReport`.
 */
export const settlements: Record<SandboxState, Settlement> = {
  // `stopped`: the sandbox may have started and ended by itself before a report arrived.
  creating: { started: 'started', stopped: 'stopped', ...lost },
  forking: { started: 'started', stopped: 'stopped', ...lost },
  pulling_snapshot: { started: 'started', stopped: 'stopped', ...lost },
  starting: { started: 'started', stopped: 'stopped', ...lost },
  restoring: { started: 'started', stopped: 'stopped', ...lost },
  // A resume can end in `stopped`: the host was restarted, so the memory of the paused sandbox is lost.
  resuming: { started: 'started', stopped: 'stopped', ...lost },
  pausing: { paused: 'paused', stopped: 'stopped', ...lost },
  stopping: { stopped: 'stopped', ...lost },
  archiving: { archived: 'archived', ...lost },
  resizing: { started: 'started', stopped: 'stopped', paused: 'paused', ...lost },
  // Usually a report about the snapshot's image ends the state `snapshotting`. A report about the sandbox ends the state only if
  // the sandbox stops or is lost.
  snapshotting: { stopped: 'stopped', ...lost },
  destroying: { destroyed: 'destroyed', error: 'error' },
  // A running or paused sandbox can end by itself, because its first process died or the host was restarted. Then the sandbox is
  // `stopped`.
  started: { stopped: 'stopped', ...lost },
  paused: { stopped: 'stopped', ...lost },
  stopped: lost,
  unknown: { started: 'started', stopped: 'stopped', paused: 'paused', archived: 'archived', ...lost },
  // No report about a sandbox changes these five states. Reports about images end `pending_build` and
  // `building_snapshot` (`runner-link/image-reports.ts`).
  pending_build: {},
  building_snapshot: {},
  archived: {},
  build_failed: {},
  destroyed: {},
  // In the state `error`, a report counts only if it names the desired state: see `afterReport`.
  error: {},
}

/**
 * States in which the runner can still refuse a resize. If a resize takes too long, the sandbox gets the state `error`. The
 * recovery of the sandbox then passes through `starting` or `stopping`.
 */
export const statesOfResize: SandboxState[] = ['resizing', 'error', 'starting', 'stopping']

/**
 * Keys: states of a sandbox during a move. Values: states that its runner may report with a refusal. The sandbox then gets the
 * reported state.
 */
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
 * Returns the state after a report, or `undefined` if nothing changes. A sandbox in `error` leaves this state only if the runner
 * reports the desired state. The runner has then completed its work while it was disconnected.
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

/** Returns the state after a runner has refused a verb. Undefined if no refusal leads from `state` to `reported`. */
export const afterRefusal = (state: SandboxState, reported: Report['state']): SandboxState | undefined =>
  refusals[state]?.includes(reported) ? reported : undefined

/** Returns whether a change of state is a claim of a warm sandbox. No other verb changes `started` to `started` or `creating`. */
export const isClaim = (from: SandboxState | null, to: SandboxState): boolean =>
  moves.some(([on, before, through]) => on.startsWith('claim') && before === from && through === to)

/** Returns whether a move leads from `through` (its state on the way) to `state`. If not, the runner needs a new assignment. */
export const isMeant = (through: SandboxState, state: SandboxState): boolean =>
  moves.some((move) => move[2] === through && move[3] === state)
