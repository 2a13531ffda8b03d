import { useState } from 'react'
import { type Draft, edited, viewOf } from './draft.ts'

/** The value of a form: the saved value, until the user types. What the user has typed stays, even if the saved value changes. */
export const useDraft = <T>(saved: T) => {
  const [draft, setDraft] = useState<Draft<T>>()
  return {
    ...viewOf(saved, draft),
    set: (value: T) => setDraft((before) => edited(saved, before, value)),
    discard: () => setDraft(undefined),
    /**
     * Call this with the saved value after the form has saved only some fields. Otherwise the form would be marked as stale, as if
     * another user had saved.
     */
    rebase: (base: T) => setDraft((before) => before && { ...before, base }),
  }
}
