import { useState } from 'react'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextArea, TextField } from '../../ui/field.tsx'
import { bodyOf, changeOf, formOf, hostsOf, type SecretForm } from './secret-form.ts'
import type { Secret, SecretBody, SecretChange } from './use-secrets.ts'

type SecretDialogProps = {
  /** The secret to change. If undefined, the dialog makes a new one. */
  secret: Secret | undefined
  onMake: (body: SecretBody) => Promise<unknown>
  onChange: (id: string, body: SecretChange) => Promise<unknown>
  onClose: () => void
}

/** Makes a secret, or changes its value, description and hosts. */
export const SecretDialog = ({ secret, onMake, onChange, onClose }: SecretDialogProps) => {
  const [form, setForm] = useState(() => formOf(secret))
  const field = (name: keyof SecretForm) => ({
    value: form[name],
    onChange: (value: string) => setForm({ ...form, [name]: value }),
  })
  return (
    <FormDialog
      title={secret === undefined ? 'Make a secret' : `Change ${secret.name}`}
      description={secret && 'Running sandboxes use the new value and hosts within seconds.'}
      isOpen
      onClose={onClose}
      submit={secret === undefined ? 'Make' : 'Change'}
      isSubmitDisabled={secret === undefined && (form.name.trim() === '' || form.value === '')}
      onSubmit={async () => {
        if (secret === undefined) await onMake(bodyOf(form))
        else await onChange(secret.id, changeOf(secret, form))
        onClose()
      }}
    >
      {secret === undefined && (
        <TextField label="Name" hint="Letters, digits, dashes and underscores" maxLength={128} {...field('name')} />
      )}
      <TextField
        label="Value"
        type="password"
        autoComplete="new-password"
        spellCheck={false}
        hint={secret === undefined ? 'The value is never shown again.' : 'Leave empty to keep the old value'}
        maxLength={8192}
        {...field('value')}
      />
      <TextField label="Description" maxLength={255} {...field('description')} />
      <TextArea
        label="Allowed hosts"
        className="input mono"
        rows={3}
        spellCheck={false}
        hint={
          hostsOf(form.hosts).length === 0
            ? 'Without a host the value is sent to nobody. One in each line, such as api.example.com or *.example.com'
            : 'One in each line, such as api.example.com or *.example.com'
        }
        {...field('hosts')}
      />
    </FormDialog>
  )
}
