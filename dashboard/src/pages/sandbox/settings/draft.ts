// The state of a form whose setting may be changed by somebody else while the user types.

/** A value that is being edited, and the saved value from which the edit began. */
export type Draft<T> = { value: T; base: T }

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

/**
 * What the form shows: the draft or, without one, the saved value. A draft is never overwritten. `isStale` says that the
 * saved value has changed since the edit began.
 */
export const viewOf = <T>(saved: T, draft: Draft<T> | undefined): { value: T; isDirty: boolean; isStale: boolean } => {
  if (draft === undefined || isSame(draft.value, saved)) return { value: saved, isDirty: false, isStale: false }
  return { value: draft.value, isDirty: true, isStale: !isSame(draft.base, saved) }
}

/** Returns the draft after the user has typed again. Its `base` stays the saved value from which the edit began. */
export const edited = <T>(saved: T, draft: Draft<T> | undefined, value: T): Draft<T> =>
  viewOf(saved, draft).isDirty ? { value, base: draft!.base } : { value, base: saved }
