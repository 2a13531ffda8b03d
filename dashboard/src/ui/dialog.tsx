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

/** A window over the page. Escape and a click beside it close it. */
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
  /** Does the work. The dialog stays open, with the error's sentence, if this throws; the caller closes it otherwise. */
  onSubmit: () => Promise<unknown>
}

/** A dialog with a form. It cannot be submitted twice, and an error keeps what was typed. */
export const FormDialog = ({ submit, isDanger, isSubmitDisabled, onSubmit, children, ...dialog }: FormDialogProps) => {
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const run = async (event: FormEvent) => {
    event.preventDefault()
    // A form inside of a portal is still a child of the form around it, for React's events.
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
          // In a long form the notice may lie below the edge.
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
