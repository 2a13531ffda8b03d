// The content of a form for a setting that somebody else may change while the user types.

/** A value that is being edited, and the saved value from which the edit began. */
export type Draft<T> = { value: T; base: T }

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

/**
 * Returns what the form shows: the typed value or, without one, the saved value. `isStale`: the saved value has changed since the
 * user began to type.
 */
export const viewOf = <T>(saved: T, draft: Draft<T> | undefined): { value: T; isDirty: boolean; isStale: boolean } => {
  if (draft === undefined || isSame(draft.value, saved)) return { value: saved, isDirty: false, isStale: false }
  return { value: draft.value, isDirty: true, isStale: !isSame(draft.base, saved) }
}

/** Returns the draft after the user has typed something. `base` is the value that was saved when the user began to type. */
export const edited = <T>(saved: T, draft: Draft<T> | undefined, value: T): Draft<T> =>
  viewOf(saved, draft).isDirty ? { value, base: draft!.base } : { value, base: saved }
