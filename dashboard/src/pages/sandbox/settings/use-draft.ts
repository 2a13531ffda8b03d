import { useState } from 'react'
import { type Draft, edited, viewOf } from './draft.ts'

/**
 * Stores the value of a form. At first this is the saved value. What the user has typed stays in the form, even if the saved value
 * changes.
 */
export const useDraft = <T>(saved: T) => {
  const [draft, setDraft] = useState<Draft<T>>()
  return {
    ...viewOf(saved, draft),
    set: (value: T) => setDraft((before) => edited(saved, before, value)),
    discard: () => setDraft(undefined),
    /**
     * Must be called when the form has saved only some of its fields. `base` is the value that is saved now. Without this call, the
     * form would take its own save for a change by another user.
     */
    rebase: (base: T) => setDraft((before) => before && { ...before, base }),
  }
}
