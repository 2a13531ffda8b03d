import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import { useRegions } from '../../api/use-regions.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { FormDialog } from '../../ui/dialog.tsx'
import { SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { bodyOf, emptyForm, isComplete, type SnapshotForm } from './create-form.ts'

/** Makes a snapshot from an image or a Dockerfile. Then opens the snapshot's page, which shows the build log. */
export const CreateSnapshotDialog = ({ onClose }: { onClose: () => void }) => {
  const [form, setForm] = useState(emptyForm)
  const organizationId = useOrganizationId()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const regions = useRegions()
  const set = (name: keyof SnapshotForm) => (value: string) => setForm({ ...form, [name]: value })
  const field = (name: keyof SnapshotForm) => ({ value: form[name], onChange: set(name) })
  const create = async () => {
    const { id } = await answerOf(control.POST('/snapshots', { body: bodyOf(form) as never }))
    void queries.invalidateQueries({ queryKey: [organizationId, 'snapshots'] })
    onClose()
    await navigate({ to: '/snapshots/$snapshotId', params: { snapshotId: id } })
  }
  return (
    <FormDialog
      title="Create a snapshot"
      description="Sandboxes start from a snapshot in milliseconds: its image is on the runners already."
      isOpen
      isWide
      onClose={onClose}
      submit="Create"
      isSubmitDisabled={!isComplete(form)}
      onSubmit={create}
    >
      <div className="form-grid">
        <TextField label="Name" hint="Such as team/python:3.13" required {...field('name')} />
        <SelectField
          label="Made from"
          {...field('source')}
          options={[
            { value: 'image', label: 'Image of a registry' },
            { value: 'dockerfile', label: 'Dockerfile' },
          ]}
        />
        {form.source === 'image' && <TextField label="Image" hint="Such as python:3.13-slim" {...field('image')} />}
      </div>
      {form.source === 'dockerfile' && (
        <TextArea
          label="Dockerfile"
          hint="This form cannot send files for COPY. Use the SDK to send them."
          className="input mono"
          rows={8}
          spellCheck={false}
          {...field('dockerfile')}
        />
      )}
      <details>
        <summary>Size of its sandboxes, region and entrypoint</summary>
        <div className="stack" style={{ marginTop: 10 }}>
          <div className="form-grid">
            <TextField label="CPU (cores)" type="number" min={1} {...field('cpu')} />
            <TextField label="Memory (GiB)" type="number" min={1} {...field('memory')} />
            <TextField label="Disk (GiB)" type="number" min={1} {...field('disk')} />
            <SelectField
              label="Region"
              {...field('region')}
              options={[
                { value: '', label: 'Default' },
                ...(regions.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
              ]}
            />
          </div>
          <TextArea
            label="Entrypoint"
            hint="One argument per line. Leave empty for the entrypoint of the image"
            className="input mono"
            rows={3}
            spellCheck={false}
            {...field('entrypoint')}
          />
        </div>
      </details>
    </FormDialog>
  )
}
