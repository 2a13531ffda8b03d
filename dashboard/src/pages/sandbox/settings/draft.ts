// What a form holds while somebody types and somebody else may change the same setting.

/** A value that is being edited, and the saved value from which the edit began. */
export type Draft<T> = { value: T; base: T }

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

/**
 * What the form shows. Without a draft it follows the saved value. A draft is never overwritten: `isStale` says that the
 * saved value has changed since the edit began.
 */
export const viewOf = <T>(saved: T, draft: Draft<T> | undefined): { value: T; isDirty: boolean; isStale: boolean } => {
  if (draft === undefined || isSame(draft.value, saved)) return { value: saved, isDirty: false, isStale: false }
  return { value: draft.value, isDirty: true, isStale: !isSame(draft.base, saved) }
}

/** The draft after an edit. The saved value of the first edit stays its base. */
export const edited = <T>(saved: T, draft: Draft<T> | undefined, value: T): Draft<T> =>
  viewOf(saved, draft).isDirty ? { value, base: draft!.base } : { value, base: saved }
