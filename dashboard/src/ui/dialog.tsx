import { Dialog as Base } from '@base-ui/react/dialog'
import { type FormEvent, type ReactNode, useState } from 'react'
import { Button } from './button.tsx'
import { ErrorNotice } from './error-notice.tsx'

type DialogProps = {
  title: string
  description?: ReactNode
  isOpen: boolean
  onClose: () => void
  isWide?: boolean | undefined
  children?: ReactNode
}

/** A dialog over the page. Escape or a click outside of the dialog closes it. */
export const Dialog = ({ title, description, isOpen, onClose, isWide, children }: DialogProps) => (
  <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
    <Base.Portal>
      <Base.Backdrop className="backdrop" />
      <Base.Popup className={isWide ? 'dialog wide' : 'dialog'}>
        <Base.Title className="dialog-title">{title}</Base.Title>
        {description !== undefined && (
          <Base.Description render={<div className="muted" />}>{description}</Base.Description>
        )}
        {children}
      </Base.Popup>
    </Base.Portal>
  </Base.Root>
)

type FormDialogProps = DialogProps & {
  submit: string
  isDanger?: boolean | undefined
  isSubmitDisabled?: boolean | undefined
  /** Called when the user submits the form. If it throws, the dialog shows the error. Otherwise the caller closes the dialog. */
  onSubmit: () => Promise<unknown>
}

/** A dialog with a form. The form cannot be submitted twice at the same time, and the typed texts stay after an error. */
export const FormDialog = ({ submit, isDanger, isSubmitDisabled, onSubmit, children, ...dialog }: FormDialogProps) => {
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const run = async (event: FormEvent) => {
    event.preventDefault()
    // If another form has opened this dialog, React would pass the event on and submit that form too.
    event.stopPropagation()
    if (isBusy) return
    setBusy(true)
    setError(undefined)
    try {
      await onSubmit()
    } catch (caught) {
      setError(caught)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog {...dialog}>
      <form className="stack" onSubmit={(event) => void run(event)}>
        {children}
        {error !== undefined && (
          // Scrolls to the error notice, which may be outside of the visible part of a long form.
          <div ref={(node) => node?.scrollIntoView({ block: 'nearest' })}>
            <ErrorNotice error={error} />
          </div>
        )}
        <div className="dialog-actions">
          <Button onClick={dialog.onClose}>Cancel</Button>
          <Button type="submit" kind={isDanger ? 'danger primary' : 'primary'} disabled={isBusy || isSubmitDisabled}>
            {isBusy ? 'Working…' : submit}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
