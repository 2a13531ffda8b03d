import { useState } from 'react'
import { type Draft, edited, viewOf } from './draft.ts'

/** The value of a form that begins with the saved one, and keeps what is typed whatever happens to the saved one. */
export const useDraft = <T>(saved: T) => {
  const [draft, setDraft] = useState<Draft<T>>()
  return {
    ...viewOf(saved, draft),
    set: (value: T) => setDraft((before) => edited(saved, before, value)),
    discard: () => setDraft(undefined),
    /** For a form that has saved only a part of itself: its own change is not somebody else's. */
    rebase: (base: T) => setDraft((before) => before && { ...before, base }),
  }
}
