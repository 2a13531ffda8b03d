import { useState } from 'react'
import { type Draft, edited, viewOf } from './draft.ts'

/** Keeps the value of a form. It begins with the saved value. Text that the user typed stays, even if the saved value changes. */
export const useDraft = <T>(saved: T) => {
  const [draft, setDraft] = useState<Draft<T>>()
  return {
    ...viewOf(saved, draft),
    set: (value: T) => setDraft((before) => edited(saved, before, value)),
    discard: () => setDraft(undefined),
    /**
     * For a form that has saved a part of its fields. The new saved value becomes the base, so it does not count as another
     * user's change.
     */
    rebase: (base: T) => setDraft((before) => before && { ...before, base }),
  }
}
