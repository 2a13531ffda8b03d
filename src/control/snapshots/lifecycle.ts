// The whole life of a snapshot. What is not in these tables cannot happen; `write.ts` is the only writer of the state.

export const snapshotStates = [
  'building',
  'pending',
  'pulling',
  'snapshotting',
  'active',
  'inactive',
  'error',
  'build_failed',
  'removing',
] as const

export type SnapshotState = (typeof snapshotStates)[number]

export const snapshotEvents = [
  'build',
  'bring',
  'copy',
  'provide',
  'progress',
  'arrive',
  'find',
  'refuse',
  'fail',
  'give-up',
  'lose',
  'lose-runner',
  'deactivate',
  'idle',
  'activate',
  'bring-again',
  'delete',
] as const

export type SnapshotEvent = (typeof snapshotEvents)[number]

type MoveRow = readonly [on: SnapshotEvent, from: SnapshotState | null, to: SnapshotState | null]

/** Events as rows; `null` is "not there". A snapshot in a state that an event has no row for stays as it is. */
export const snapshotMoves = [
  // on      from    to
  // It is made from a definition, from an image or a file, or of a sandbox; the built-in one is there from the start.
  ['build', null, 'building'],
  ['bring', null, 'pending'],
  ['copy', null, 'snapshotting'],
  ['provide', null, 'active'],
  // A runner says that it has come further with its image.
  ['progress', 'building', 'building'],
  ['progress', 'pending', 'pulling'],
  ['progress', 'pulling', 'pulling'],
  ['progress', 'snapshotting', 'snapshotting'],
  // A runner has its image now, and says what the image says of itself.
  ['arrive', 'building', 'active'],
  ['arrive', 'pending', 'active'],
  ['arrive', 'pulling', 'active'],
  ['arrive', 'snapshotting', 'active'],
  // A runner that says hello had its image already.
  ['find', 'pending', 'active'],
  ['find', 'pulling', 'active'],
  // The image has arrived, and is larger than it may be.
  ['refuse', 'building', 'error'],
  ['refuse', 'pending', 'error'],
  ['refuse', 'pulling', 'error'],
  ['refuse', 'snapshotting', 'error'],
  // No runner can make or bring its image, or the last that had it has lost it.
  ['fail', 'building', 'build_failed'],
  ['fail', 'pending', 'error'],
  ['fail', 'pulling', 'error'],
  ['fail', 'snapshotting', 'error'],
  ['fail', 'active', 'error'],
  // Nothing was heard of its image for long.
  ['give-up', 'building', 'build_failed'],
  ['give-up', 'pending', 'error'],
  ['give-up', 'pulling', 'error'],
  ['give-up', 'snapshotting', 'error'],
  // No runner has its image any more, and they have been told to bring it again.
  ['lose', 'active', 'pulling'],
  // The one runner that kept it is out of service. What is built is kept by no single runner.
  ['lose-runner', 'pending', 'error'],
  ['lose-runner', 'pulling', 'error'],
  ['lose-runner', 'snapshotting', 'error'],
  ['lose-runner', 'active', 'error'],
  ['lose-runner', 'inactive', 'error'],
  ['lose-runner', 'error', 'error'],
  ['deactivate', 'active', 'inactive'],
  ['idle', 'active', 'inactive'],
  // A runner still has its image; else it is brought, or built, again.
  ['activate', 'inactive', 'active'],
  ['activate', 'error', 'active'],
  ['bring-again', 'inactive', 'pending'],
  ['bring-again', 'error', 'pending'],
  ['delete', 'building', null],
  ['delete', 'pending', null],
  ['delete', 'pulling', null],
  ['delete', 'snapshotting', null],
  ['delete', 'active', null],
  ['delete', 'inactive', null],
  ['delete', 'error', null],
  ['delete', 'build_failed', null],
  ['delete', 'removing', null],
] as const satisfies readonly MoveRow[]

type Row = (typeof snapshotMoves)[number]

/** What a new snapshot begins with. */
export type FirstEvent = Extract<Row, readonly [SnapshotEvent, null, SnapshotState]>[0]
/** What happens to one that is there, and leaves it there. */
export type MovingEvent = Exclude<SnapshotEvent, FirstEvent | 'delete'>

const rowsOf = (on: SnapshotEvent): readonly MoveRow[] => snapshotMoves.filter((row) => row[0] === on)

export const firstStateOn = (on: FirstEvent): SnapshotState => {
  const to = rowsOf(on).find(([, from]) => from === null)?.[2]
  if (!to) throw new Error(`no snapshot begins with ${on}`)
  return to
}

/** From which state to which an event leads. */
export const movesOn = (on: MovingEvent): { from: SnapshotState; to: SnapshotState }[] =>
  rowsOf(on).flatMap(([, from, to]) => (from === null || to === null ? [] : [{ from, to }]))

export const deletableStates = rowsOf('delete').flatMap(([, from]) => (from === null ? [] : [from]))

type StateRow = {
  /** It may not be used yet: its image is being made or brought. */
  isInMaking: boolean
  /** Runners keep its image. */
  keepsImage: boolean
}

export const snapshotStateRows: Record<SnapshotState, StateRow> = {
  building: { isInMaking: true, keepsImage: true },
  pending: { isInMaking: true, keepsImage: true },
  pulling: { isInMaking: true, keepsImage: true },
  snapshotting: { isInMaking: true, keepsImage: true },
  active: { isInMaking: false, keepsImage: true },
  // An image that can be brought again is given back all the same, once no other snapshot of it is active.
  inactive: { isInMaking: false, keepsImage: true },
  error: { isInMaking: false, keepsImage: false },
  build_failed: { isInMaking: false, keepsImage: false },
  // A word of the interface; no snapshot here is ever in it.
  removing: { isInMaking: false, keepsImage: false },
}

export const statesInMaking = snapshotStates.filter((state) => snapshotStateRows[state].isInMaking)
export const statesKeepingImage = snapshotStates.filter((state) => snapshotStateRows[state].keepsImage)
