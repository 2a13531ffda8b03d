import { useQuery } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import { useRegions } from '../../api/use-regions.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { FormDialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { shownText } from '../../ui/shown-text.ts'
import type { WarmPool } from './use-warm-pools.ts'

const mostSandboxes = 100

const NumberField = ({ value, onChange }: { value: string; onChange: (value: string) => void }) => (
  <TextField
    label="Number of sandboxes"
    hint={`0 to ${mostSandboxes}. A warm sandbox counts towards your quota only after you have taken it.`}
    type="number"
    required
    min={0}
    max={mostSandboxes}
    value={value}
    onChange={onChange}
  />
)

type MakeProps = {
  onMake: (body: { snapshot: string; pool: number; target?: string }) => Promise<unknown>
  onClose: () => void
}

/** Makes a warm pool. Asks for its snapshot, its number of sandboxes and its region. */
export const MakeWarmPoolDialog = ({ onMake, onClose }: MakeProps) => {
  const organizationId = useOrganizationId()
  const [snapshot, setSnapshot] = useState('')
  const [number, setNumber] = useState('2')
  const [target, setTarget] = useState('')
  const listId = useId()
  const regions = useRegions()
  const snapshots = useQuery({
    queryKey: [organizationId, 'snapshots', 'choices'],
    queryFn: () => answerOf(control.GET('/snapshots', { params: { query: { limit: 100 } } })),
  })
  return (
    <FormDialog
      title="Make a warm pool"
      isOpen
      onClose={onClose}
      submit="Make"
      isSubmitDisabled={snapshot.trim() === ''}
      onSubmit={async () => {
        await onMake({ snapshot: snapshot.trim(), pool: Number(number), ...(target !== '' && { target }) })
        onClose()
      }}
    >
      <TextField
        label="Snapshot"
        hint="The name or id of the snapshot"
        list={listId}
        value={snapshot}
        onChange={setSnapshot}
        required
      />
      <datalist id={listId}>
        {(snapshots.data?.items ?? [])
          .filter(({ state }) => state === 'active')
          .map(({ name }) => (
            <option key={name} value={name} />
          ))}
      </datalist>
      <NumberField value={number} onChange={setNumber} />
      <SelectField
        label="Region"
        value={target}
        onChange={setTarget}
        options={[
          { value: '', label: 'Default' },
          ...(regions.data ?? []).map(({ id, name }) => ({ value: id, label: shownText(name) })),
        ]}
      />
    </FormDialog>
  )
}

type ChangeProps = {
  warmPool: WarmPool
  onChange: (pool: number) => Promise<unknown>
  onClose: () => void
}

/** Changes how many sandboxes a warm pool should have. */
export const ChangeWarmPoolDialog = ({ warmPool, onChange, onClose }: ChangeProps) => {
  const [number, setNumber] = useState(String(warmPool.pool))
  return (
    <FormDialog
      title={`Warm sandboxes of ${shownText(warmPool.snapshot)}`}
      isOpen
      onClose={onClose}
      submit="Change"
      onSubmit={async () => {
        await onChange(Number(number))
        onClose()
      }}
    >
      <NumberField value={number} onChange={setNumber} />
    </FormDialog>
  )
}
