import { useState } from 'react'
import { type AnswerTo, answerOf, apiUrl, control } from '../../api/client.ts'
import { PermissionChoice } from '../../permissions/permission-choice.tsx'
import { type Permission, workPermissions } from '../../permissions/permissions.ts'
import type { Standing } from '../../session/people.ts'
import { session } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock, SecretOnce } from '../../ui/copy.tsx'
import { Dialog, FormDialog } from '../../ui/dialog.tsx'
import { expiresAt, never } from '../../ui/expiry.ts'
import { ExpiryField } from '../../ui/expiry-field.tsx'
import { TextField } from '../../ui/field.tsx'

type NewKey = AnswerTo<'/api-keys', 'post'>

/** A dialog that shows the value of a new API key and how to use the key. The server sends the value only once. */
const NewKeyDialog = ({ created, onClose }: { created: NewKey; onClose: () => void }) => (
  // The dialog ignores Escape and clicks outside of it, because they would hide a value that is shown only once.
  <Dialog title={`The key ${created.name}`} isOpen isWide onClose={() => {}}>
    <SecretOnce value={created.value} what="the key" />
    <h3>For the command line and your own programs</h3>
    <CodeBlock
      code={`export ALCOVE_API_URL=${apiUrl}\nexport ALCOVE_API_KEY=${created.value}`}
      label="Copy the lines for the command line"
    />
    <h3>For the public SDK</h3>
    <CodeBlock
      code={`export DAYTONA_API_URL=${apiUrl}\nexport DAYTONA_API_KEY=${created.value}`}
      label="Copy the lines for the SDK"
    />
    <div className="dialog-actions">
      <Button kind="primary" onClick={onClose}>
        I have copied it
      </Button>
    </div>
  </Dialog>
)

type Props = {
  /**
   * The user's permissions: the dialog offers only these for the new key. Until they are fetched, the dialog offers all
   * permissions, and the server checks.
   */
  standing: Standing | undefined
  onClose: () => void
  onCreated: () => void
}

/** Makes an API key and then shows its value. The value is never shown again. */
export const CreateDialog = ({ standing, onClose, onCreated }: Props) => {
  const holds = (permission: Permission) => standing?.holds(permission) ?? true
  const [name, setName] = useState('')
  const [expiry, setExpiry] = useState({ days: '90', date: '' })
  const [chosen, setChosen] = useState<ReadonlySet<Permission>>(() => new Set(workPermissions.filter(holds)))
  const [created, setCreated] = useState<NewKey>()
  const create = async () => {
    const end = expiresAt(expiry, session.now())
    const body = { name, permissions: [...chosen], ...(end !== null && { expiresAt: end }) }
    setCreated(await answerOf(control.POST('/api-keys', { body: body as never })))
    onCreated()
  }
  if (created !== undefined) return <NewKeyDialog created={created} onClose={onClose} />
  return (
    <FormDialog
      title="Create a key"
      description="The key acts as you in this organization, with only the permissions that you choose."
      isOpen
      isWide
      onClose={onClose}
      submit="Create"
      isSubmitDisabled={name.trim() === ''}
      onSubmit={create}
    >
      <div className="field-grid">
        <TextField
          label="Name"
          hint="What the key is for, such as ci"
          value={name}
          onChange={setName}
          maxLength={255}
          autoFocus
        />
        <ExpiryField
          label="Ends"
          value={expiry}
          onChange={setExpiry}
          neverLabel="Never"
          hint={expiry.days === never ? 'The key works until somebody deletes it.' : undefined}
        />
      </div>
      <PermissionChoice chosen={chosen} onChange={setChosen} holds={holds} />
    </FormDialog>
  )
}
