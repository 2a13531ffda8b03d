import { useState } from 'react'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { toast } from '../../ui/toast.tsx'
import { changedOf, type QuotaField, typedOf } from './quota-form.ts'

type Props = {
  title: string
  description: string
  fields: readonly QuotaField[]
  values: Readonly<Record<string, unknown>>
  onSave: (changed: Record<string, number>) => Promise<unknown>
  onClose: () => void
}

/** Changes quotas. Only the fields that were changed are sent. */
export const QuotaDialog = ({ title, description, fields, values, onSave, onClose }: Props) => {
  const [before] = useState(() => typedOf(fields, values))
  const [typed, setTyped] = useState(before)
  const save = async () => {
    const changed = changedOf(fields, before, typed)
    if (Object.keys(changed).length > 0) {
      await onSave(changed)
      toast('The quotas are changed')
    }
    onClose()
  }
  return (
    <FormDialog title={title} description={description} isOpen isWide onClose={onClose} submit="Change" onSubmit={save}>
      <div className="field-grid">
        {fields.map(({ name, label, hint }) => (
          <TextField
            key={name}
            label={label}
            hint={hint}
            inputMode="numeric"
            value={typed[name] ?? ''}
            onChange={(text) => setTyped({ ...typed, [name]: text })}
          />
        ))}
      </div>
    </FormDialog>
  )
}
