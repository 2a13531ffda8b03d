import { type FormEvent, type ReactNode, useId, useState } from 'react'
import { Button } from '../../../ui/button.tsx'
import { ErrorNotice } from '../../../ui/error-notice.tsx'

type CardProps = { title: string; hint?: ReactNode; children: ReactNode; isDanger?: boolean }

/** A card with a heading and a group of settings. */
export const SettingCard = ({ title, hint, children, isDanger }: CardProps) => {
  const id = useId()
  return (
    <section className={isDanger ? 'card danger-card' : 'card'} aria-labelledby={id}>
      <div className="card-body">
        <div>
          <h2 id={id}>{title}</h2>
          {hint !== undefined && <div className="muted">{hint}</div>}
        </div>
        {children}
      </div>
    </section>
  )
}

type FormProps = Omit<CardProps, 'isDanger'> & {
  /** Whether the text in the form differs from the saved value. */
  isDirty: boolean
  /** Whether somebody else has saved another value since this edit began. */
  isStale: boolean
  /** An error message if the text in the form cannot be saved. */
  problem?: string | undefined
  onSave: () => Promise<unknown>
  onDiscard: () => void
}

/** A form for settings that are saved together. If the server refuses them, the text in the form stays. */
export const SettingForm = ({ isDirty, isStale, problem, onSave, onDiscard, children, ...card }: FormProps) => {
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const save = async (event: FormEvent) => {
    event.preventDefault()
    if (isBusy || !isDirty || problem !== undefined) return
    setBusy(true)
    setError(undefined)
    try {
      await onSave()
      onDiscard()
    } catch (caught) {
      setError(caught)
    } finally {
      setBusy(false)
    }
  }
  const discard = () => {
    setError(undefined)
    onDiscard()
  }
  return (
    <SettingCard {...card}>
      <form className="stack" onSubmit={(event) => void save(event)}>
        {children}
        {isStale && (
          <div className="notice warn" role="status">
            Somebody else changed this after you began to type. “Save” overwrites that change. “Discard” shows it.
          </div>
        )}
        {isDirty && problem !== undefined && (
          <div className="field-error" role="status">
            {problem}
          </div>
        )}
        {error !== undefined && <ErrorNotice error={error} />}
        {(isDirty || isBusy) && (
          <div className="row">
            <Button type="submit" kind="primary" disabled={isBusy || problem !== undefined}>
              {isBusy ? 'Saving…' : 'Save'}
            </Button>
            <Button onClick={discard} disabled={isBusy}>
              Discard
            </Button>
          </div>
        )}
      </form>
    </SettingCard>
  )
}
