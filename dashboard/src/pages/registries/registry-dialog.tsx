import { useState } from 'react'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { shownText } from '../../ui/shown-text.ts'
import type { Registry, RegistryBody } from './use-registries.ts'

type RegistryDialogProps = {
  /** The registry to change. If undefined, the dialog adds one. */
  registry: Registry | undefined
  onAdd: (body: RegistryBody) => Promise<unknown>
  onChange: (id: string, body: Partial<RegistryBody>) => Promise<unknown>
  onClose: () => void
}

/** Adds or changes the credentials for a container registry. The server checks them at the registry before it saves them. */
export const RegistryDialog = ({ registry, onAdd, onChange, onClose }: RegistryDialogProps) => {
  const [form, setForm] = useState({
    name: registry?.name ?? '',
    url: registry?.url ?? '',
    username: registry?.username ?? '',
    password: '',
    project: registry?.project ?? '',
  })
  const field = (name: keyof typeof form) => ({
    value: form[name],
    onChange: (value: string) => setForm({ ...form, [name]: value }),
  })
  const { password, ...rest } = form
  const isComplete = form.url.trim() !== '' && form.username !== '' && (registry !== undefined || password !== '')
  return (
    <FormDialog
      title={registry === undefined ? 'Add a registry' : `Change ${shownText(registry.name)}`}
      description="The server tries the account at the registry before it saves it."
      isOpen
      onClose={onClose}
      submit={registry === undefined ? 'Test and add' : 'Test and change'}
      isSubmitDisabled={!isComplete}
      onSubmit={async () => {
        if (registry === undefined) await onAdd(form)
        else await onChange(registry.id, { ...rest, ...(password !== '' && { password }) })
        onClose()
      }}
    >
      <TextField label="Name" hint="For people, such as “Our images”" {...field('name')} />
      <TextField label="Address" hint="Such as registry.example.com" spellCheck={false} {...field('url')} />
      <TextField
        label="Project"
        hint="The account is used for images whose names begin with this text, such as team/tools. Leave empty for all images"
        spellCheck={false}
        {...field('project')}
      />
      <TextField label="User" spellCheck={false} {...field('username')} />
      <TextField
        label="Password or token"
        type="password"
        autoComplete="new-password"
        hint={registry === undefined ? 'The password is never shown again.' : 'Leave empty to keep the old password'}
        {...field('password')}
      />
    </FormDialog>
  )
}
