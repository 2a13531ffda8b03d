// All states of a snapshot, and all moves between them; other moves cannot happen. Only `write.ts` writes the state.

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

/**
 * Each row is a move: event, state before, state after. `null`: there is no snapshot. An event without a row for the
 * state changes nothing.
 */
export const snapshotMoves = [
  // A snapshot comes from a definition (`build`), an image or a file (`bring`), or a sandbox (`copy`). The built-in snapshot is
  // active immediately (`provide`).
  ['build', null, 'building'],
  ['bring', null, 'pending'],
  ['copy', null, 'snapshotting'],
  ['provide', null, 'active'],
  // A runner reports progress with building, pulling or copying the image.
  ['progress', 'building', 'building'],
  ['progress', 'pending', 'pulling'],
  ['progress', 'pulling', 'pulling'],
  ['progress', 'snapshotting', 'snapshotting'],
  // A runner has completed the image and reports its config.
  ['arrive', 'building', 'active'],
  ['arrive', 'pending', 'active'],
  ['arrive', 'pulling', 'active'],
  ['arrive', 'snapshotting', 'active'],
  // A runner connects, and the list of its images contains the image.
  ['find', 'pending', 'active'],
  ['find', 'pulling', 'active'],
  // The image is complete on a runner, but is larger than allowed.
  ['refuse', 'building', 'error'],
  ['refuse', 'pending', 'error'],
  ['refuse', 'pulling', 'error'],
  ['refuse', 'snapshotting', 'error'],
  // No runner can build or pull the image, or the last runner with the image has lost it.
  ['fail', 'building', 'build_failed'],
  ['fail', 'pending', 'error'],
  ['fail', 'pulling', 'error'],
  ['fail', 'snapshotting', 'error'],
  ['fail', 'active', 'error'],
  // No runner has reported progress with building, pulling or copying the image for an hour.
  ['give-up', 'building', 'build_failed'],
  ['give-up', 'pending', 'error'],
  ['give-up', 'pulling', 'error'],
  ['give-up', 'snapshotting', 'error'],
  // No runner has the image any more. Control has told runners to pull or build the image again.
  ['lose', 'active', 'pulling'],
  // The only runner with the image was removed for good. Any runner can build, so `building` has no row here.
  ['lose-runner', 'pending', 'error'],
  ['lose-runner', 'pulling', 'error'],
  ['lose-runner', 'snapshotting', 'error'],
  ['lose-runner', 'active', 'error'],
  ['lose-runner', 'inactive', 'error'],
  ['lose-runner', 'error', 'error'],
  ['deactivate', 'active', 'inactive'],
  ['idle', 'active', 'inactive'],
  // `activate`: a runner still has the image. `bring-again`: no runner has the image, so it is pulled or built again.
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

/** The events that create a snapshot. */
export type FirstEvent = Extract<Row, readonly [SnapshotEvent, null, SnapshotState]>[0]
/** The events that change an existing snapshot without deleting it. */
export type MovingEvent = Exclude<SnapshotEvent, FirstEvent | 'delete'>

const rowsOf = (on: SnapshotEvent): readonly MoveRow[] => snapshotMoves.filter((row) => row[0] === on)

export const firstStateOn = (on: FirstEvent): SnapshotState => {
  const to = rowsOf(on).find(([, from]) => from === null)?.[2]
  if (!to) throw new Error(`no snapshot begins with ${on}`)
  return to
}

/** Lists the changes of state that an event can cause: each with the snapshot's state before and after the event. */
export const movesOn = (on: MovingEvent): { from: SnapshotState; to: SnapshotState }[] =>
  rowsOf(on).flatMap(([, from, to]) => (from === null || to === null ? [] : [{ from, to }]))

export const deletableStates = rowsOf('delete').flatMap(([, from]) => (from === null ? [] : [from]))

type StateRow = {
  /** True while the snapshot cannot be used yet, because its image is being built, pulled or copied. */
  isInMaking: boolean
  keepsImage: boolean
}

export const snapshotStateRows: Record<SnapshotState, StateRow> = {
  building: { isInMaking: true, keepsImage: true },
  pending: { isInMaking: true, keepsImage: true },
  pulling: { isInMaking: true, keepsImage: true },
  snapshotting: { isInMaking: true, keepsImage: true },
  active: { isInMaking: false, keepsImage: true },
  // Runners may remove an inactive snapshot's image if the image came from a registry or a file. Runners keep the image while
  // another snapshot with the image is active (`change.ts`).
  inactive: { isInMaking: false, keepsImage: true },
  error: { isInMaking: false, keepsImage: false },
  build_failed: { isInMaking: false, keepsImage: false },
  // The public API defines this state, but no snapshot of this server is ever in it.
  removing: { isInMaking: false, keepsImage: false },
}

export const statesInMaking = snapshotStates.filter((state) => snapshotStateRows[state].isInMaking)
export const statesKeepingImage = snapshotStates.filter((state) => snapshotStateRows[state].keepsImage)
