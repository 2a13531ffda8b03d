// All states of a volume, and all moves between them. Only `store.ts` writes the state.

export const volumeStates = ['ready', 'error', 'pending_delete', 'deleted'] as const

export type VolumeState = (typeof volumeStates)[number]

export const volumeEvents = ['create', 'delete', 'drop', 'remove', 'lose-runner'] as const

export type VolumeEvent = (typeof volumeEvents)[number]

type MoveRow = readonly [on: VolumeEvent, from: VolumeState | null, to: VolumeState]

/** Each row is a move: event, state before, state after. `null`: the volume does not exist. Events without a row change nothing. */
export const volumeMoves = [
  // A new volume is `ready` immediately. A runner makes the volume when a sandbox mounts it for the first time.
  ['create', null, 'ready'],
  // A runner may have files of the volume, and must remove them.
  ['delete', 'ready', 'pending_delete'],
  ['delete', 'error', 'pending_delete'],
  // `drop` deletes a volume of which no runner has files: no sandbox has ever mounted it, or its runner is removed.
  ['drop', 'ready', 'deleted'],
  ['drop', 'error', 'deleted'],
  // A runner reports that it has no files of the volume any more.
  ['remove', 'pending_delete', 'deleted'],
  // The runner of the volume was removed, and the volume's files are lost with it.
  ['lose-runner', 'ready', 'error'],
  ['lose-runner', 'pending_delete', 'deleted'],
] as const satisfies readonly MoveRow[]

const rows: readonly MoveRow[] = volumeMoves

/** Lists the changes of state that an event can cause: each with the volume's state before and after the event. */
export const movesOn = (on: Exclude<VolumeEvent, 'create'>): { from: VolumeState; to: VolumeState }[] =>
  rows.flatMap(([event, from, to]) => (event === on && from !== null ? [{ from, to }] : []))

/**
 * States in which the volume can be found by its name and deleted. In other states, another volume may use the name.
 */
export const namedStates = movesOn('delete').map(({ from }) => from)
