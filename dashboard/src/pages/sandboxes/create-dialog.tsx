import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { answerOf, apiUrl, control } from '../../api/client.ts'
import { session } from '../../session/session.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { CodeBlock } from '../../ui/copy.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { CheckField, type Option, SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { toast } from '../../ui/toast.tsx'
import { bodyOf, type CreateForm, curlOf, emptyForm, sdkOf } from './create-form.ts'
import './sandboxes.css'

const sources: readonly Option[] = [
  { value: 'snapshot', label: 'Snapshot' },
  { value: 'image', label: 'Image of a registry' },
  { value: 'dockerfile', label: 'Dockerfile' },
]
const networks: readonly Option[] = [
  { value: 'open', label: 'The public Internet' },
  { value: 'closed', label: 'Nothing' },
  { value: 'addresses', label: 'Only these addresses' },
  { value: 'domains', label: 'Only these domains' },
]

const Preview = ({ form }: { form: CreateForm }) => {
  const [kind, setKind] = useState<'curl' | 'sdk'>('curl')
  let code: string
  try {
    code = kind === 'curl' ? curlOf(apiUrl, bodyOf(form)) : sdkOf(apiUrl, bodyOf(form))
  } catch (error) {
    code = `# ${(error as Error).message}`
  }
  return (
    <details>
      <summary>The same request as code</summary>
      <div className="stack" style={{ marginTop: 10 }}>
        <SelectField
          label="Language"
          value={kind}
          onChange={(value) => setKind(value as typeof kind)}
          options={[
            { value: 'curl', label: 'curl' },
            { value: 'sdk', label: 'TypeScript' },
          ]}
        />
        <CodeBlock code={code} />
      </div>
    </details>
  )
}

/** Makes a sandbox, with all options that the API has. `snapshot` is the snapshot that is chosen when the dialog opens. */
export const CreateDialog = ({ snapshot = '', onClose }: { snapshot?: string; onClose: () => void }) => {
  const [form, setForm] = useState({ ...emptyForm, snapshot })
  const organizationId = useOrganizationId()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const snapshots = useQuery({
    queryKey: [organizationId, 'snapshots', 'choices'],
    queryFn: () => answerOf(control.GET('/snapshots', { params: { query: { limit: 100 } } })),
  })
  const regions = useQuery({
    queryKey: [organizationId, 'regions'],
    queryFn: () => answerOf(control.GET('/regions')),
  })
  const active = (snapshots.data?.items ?? []).filter(({ state }) => state === 'active').map(({ name }) => name)
  const names = snapshot === '' || active.includes(snapshot) ? active : [snapshot, ...active]
  const set = <Name extends keyof CreateForm>(name: Name, value: CreateForm[Name]) =>
    setForm({ ...form, [name]: value })
  const text = (
    name:
      | 'name'
      | 'cpu'
      | 'memory'
      | 'disk'
      | 'autoStop'
      | 'autoArchive'
      | 'autoDelete'
      | 'ttl'
      | 'user'
      | 'labels'
      | 'image',
    label: string,
    hint?: string,
    type = 'text',
  ) => <TextField label={label} hint={hint} type={type} value={form[name]} onChange={(value) => set(name, value)} />
  const create = async () => {
    const { id, name } = await answerOf(control.POST('/sandbox', { body: bodyOf(form) as never }))
    toast(`${name} is made`)
    void queries.invalidateQueries({ queryKey: [organizationId, 'sandboxes'] })
    onClose()
    await navigate({ to: '/sandboxes/$sandboxId', params: { sandboxId: id } })
  }
  return (
    <FormDialog title="Create a sandbox" isOpen isWide onClose={onClose} submit="Create" onSubmit={create}>
      <div className="filter-grid">
        {text('name', 'Name', 'Leave empty to get a generated name')}
        <SelectField
          label="Made from"
          value={form.source}
          onChange={(value) => set('source', value as CreateForm['source'])}
          options={sources}
        />
        {form.source === 'snapshot' && (
          <SelectField
            label="Snapshot"
            value={form.snapshot}
            onChange={(value) => set('snapshot', value)}
            options={[
              { value: '', label: `Default (${session.config.defaultSnapshot})` },
              ...names.map((name) => ({ value: name, label: name })),
            ]}
          />
        )}
        {form.source === 'image' && text('image', 'Image', 'Such as python:3.13-slim')}
      </div>
      {form.source === 'dockerfile' && (
        <TextArea
          label="Dockerfile"
          className="input mono"
          rows={6}
          value={form.dockerfile}
          onChange={(value) => set('dockerfile', value)}
        />
      )}
      <details>
        <summary>Size, region and user</summary>
        <div className="filter-grid" style={{ marginTop: 10 }}>
          {text('cpu', 'CPU (cores)', undefined, 'number')}
          {text('memory', 'Memory (GiB)', undefined, 'number')}
          {text('disk', 'Disk (GiB)', undefined, 'number')}
          <SelectField
            label="Region"
            value={form.region}
            onChange={(value) => set('region', value)}
            options={[
              { value: '', label: 'Default' },
              ...(regions.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
            ]}
          />
          {text('user', 'User', 'The user who runs commands. Leave empty for the user of the image')}
          {text('labels', 'Labels', 'key=value, other=value')}
        </div>
      </details>
      <details>
        <summary>Variables, secrets and volumes</summary>
        <div className="filter-grid" style={{ marginTop: 10 }}>
          <TextArea
            label="Variables"
            hint="Lines of KEY=value"
            value={form.env}
            onChange={(value) => set('env', value)}
          />
          <TextArea
            label="Secrets"
            hint="Lines of VARIABLE=secret"
            value={form.secrets}
            onChange={(value) => set('secrets', value)}
          />
          <TextArea
            label="Volumes"
            hint="Lines of volume:/path"
            value={form.volumes}
            onChange={(value) => set('volumes', value)}
          />
        </div>
      </details>
      <details>
        <summary>Network and previews</summary>
        <div className="stack" style={{ marginTop: 10 }}>
          <SelectField
            label="Network access"
            value={form.network}
            onChange={(value) => set('network', value as CreateForm['network'])}
            options={networks}
          />
          {(form.network === 'addresses' || form.network === 'domains') && (
            <TextArea
              label={form.network === 'addresses' ? 'Addresses' : 'Domains'}
              hint={
                form.network === 'addresses' ? 'Such as 198.51.100.0/24' : 'Such as api.example.com or *.example.com'
              }
              value={form.allowList}
              onChange={(value) => set('allowList', value)}
            />
          )}
          <CheckField
            label="Anyone may open the previews"
            checked={form.isPublic}
            onChange={(checked) => set('isPublic', checked)}
          />
        </div>
      </details>
      <details>
        <summary>When the sandbox stops and is deleted</summary>
        <div className="filter-grid" style={{ marginTop: 10 }}>
          {text('autoStop', 'Stop after this many idle minutes', '0: never. Leave empty for the default', 'number')}
          {text('autoArchive', 'Archive this many minutes after the stop', '0: as late as possible', 'number')}
          {text(
            'autoDelete',
            'Delete this many minutes after the stop',
            '0: as soon as it stops. Negative: never',
            'number',
          )}
          {text('ttl', 'Delete this many minutes from now', '0: never', 'number')}
        </div>
      </details>
      <Preview form={form} />
    </FormDialog>
  )
}
