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
     * Must be called when the form has saved a part of its fields. The saved value replaces `base`, the value with which the
     * edit began. Otherwise the form would take the saved value for a change by another user.
     */
    rebase: (base: T) => setDraft((before) => before && { ...before, base }),
  }
}
