import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { CopyText } from '../../ui/copy.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { MenuItem } from '../../ui/menu.tsx'
import { Empty, Page, WhenLoaded } from '../../ui/page.tsx'
import { RowMenu } from '../../ui/row-menu.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { StateBadge } from '../../ui/state-badge.tsx'
import { Table, wide } from '../../ui/table.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { useVolumes, type Volume } from './use-volumes.ts'

const Row = ({ volume, onDelete }: { volume: Volume; onDelete: () => void }) => {
  const { id, name, state, errorReason, createdAt, lastUsedAt } = volume
  return (
    <tr>
      <td className="name wrap-anywhere">{shownText(name)}</td>
      <td>
        <StateBadge state={state} />
        {errorReason !== null && <div className="field-error wrap-anywhere">{shownText(errorReason)}</div>}
      </td>
      <td className="wide-only">
        <CopyText text={id} shown={id.slice(0, 8)} />
      </td>
      <td className="time">
        <TimeAgo time={lastUsedAt} />
      </td>
      <td className="time wide-only">
        <TimeAgo time={createdAt} />
      </td>
      <td className="actions">
        {(state === 'ready' || state === 'error') && (
          <RowMenu name={name}>
            <MenuItem isDanger onSelect={onDelete}>
              Delete…
            </MenuItem>
          </RowMenu>
        )}
      </td>
    </tr>
  )
}

const MakeDialog = ({ onMake, onClose }: { onMake: (name: string) => Promise<unknown>; onClose: () => void }) => {
  const [name, setName] = useState('')
  return (
    <FormDialog
      title="Make a volume"
      description="Sandboxes can mount it at once, by its name."
      isOpen
      onClose={onClose}
      submit="Make"
      isSubmitDisabled={name.trim() === ''}
      onSubmit={async () => {
        await onMake(name.trim())
        onClose()
      }}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={255} />
    </FormDialog>
  )
}

const VolumesPage = () => {
  const [withDeleted, setWithDeleted] = useState(false)
  const { query, make, remove } = useVolumes(withDeleted)
  const [isMaking, setMaking] = useState(false)
  const [toDelete, setToDelete] = useState<Volume>()
  const makeButton = (
    <Button kind="primary" onClick={() => setMaking(true)}>
      Make volume
    </Button>
  )
  return (
    <Page
      title="Volumes"
      description="A volume is a directory that several sandboxes mount. Its files stay when the sandboxes are deleted."
      actions={makeButton}
    >
      <CheckField
        label="Show volumes that were deleted in the last week"
        checked={withDeleted}
        onChange={setWithDeleted}
      />
      <WhenLoaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No volumes" action={makeButton}>
              Make a volume. When you create a sandbox, give the name of the volume and a path, such as data:/data.
            </Empty>
          ) : (
            <div className="card">
              <Table label="Volumes" columns={['Name', 'State', wide('Id'), 'Last used', wide('Created')]} rows={rows}>
                {(volume) => <Row key={volume.id} volume={volume} onDelete={() => setToDelete(volume)} />}
              </Table>
            </div>
          )
        }
      </WhenLoaded>
      {isMaking && <MakeDialog onMake={make} onClose={() => setMaking(false)} />}
      <Confirm
        title={`Delete ${shownText(toDelete?.name ?? '')} and its files?`}
        verb="Delete with all files"
        typed={toDelete?.name}
        isOpen={toDelete !== undefined}
        onClose={() => setToDelete(undefined)}
        onConfirm={async () => {
          await remove(toDelete!.id)
          toast(`${shownText(toDelete!.name)} is being deleted`)
        }}
      >
        All files in the volume are deleted. This cannot be undone. A volume that a sandbox mounts cannot be deleted.
      </Confirm>
    </Page>
  )
}

export default VolumesPage
