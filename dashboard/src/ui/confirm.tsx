import { type ReactNode, useState } from 'react'
import { FormDialog } from './dialog.tsx'
import { TextField } from './field.tsx'

type ConfirmProps = {
  title: string
  /** A sentence that says what the action will do. */
  children: ReactNode
  /** The text of the button that confirms, such as "Delete". */
  verb: string
  /** A text that the user must type before the button works. Used for actions that cannot be undone. */
  typed?: string | undefined
  isOpen: boolean
  onClose: () => void
  onConfirm: () => Promise<unknown>
}

/** Asks before a dangerous action and says what the action does. The dialog closes after the action has succeeded. */
export const Confirm = ({ title, children, verb, typed, isOpen, onClose, onConfirm }: ConfirmProps) => {
  const [text, setText] = useState('')
  const close = () => {
    setText('')
    onClose()
  }
  return (
    <FormDialog
      title={title}
      isOpen={isOpen}
      onClose={close}
      submit={verb}
      isDanger
      isSubmitDisabled={typed !== undefined && text !== typed}
      onSubmit={async () => {
        await onConfirm()
        close()
      }}
    >
      <div>{children}</div>
      {typed !== undefined && (
        <TextField
          label={
            <>
              Type <code>{typed}</code> to continue
            </>
          }
          value={text}
          onChange={setText}
        />
      )}
    </FormDialog>
  )
}
