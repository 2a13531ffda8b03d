import { useState } from 'react'
import { useRegions } from '../../api/use-regions.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { CodeBlock } from '../../ui/copy.tsx'
import { Dialog, FormDialog } from '../../ui/dialog.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { shownText } from '../../ui/shown-text.ts'
import type { NewRunner, Runner } from './use-runners.ts'

type AddProps = { onAdd: (name: string, regionId: string) => Promise<unknown>; onClose: () => void }

/** Asks for the name and the region of a new runner. */
export const AddRunnerDialog = ({ onAdd, onClose }: AddProps) => {
  const [name, setName] = useState('')
  const [regionId, setRegionId] = useState('')
  const regions = useRegions()
  const shared = (regions.data ?? []).filter(({ regionType }) => regionType !== 'custom')
  return (
    <FormDialog
      title="Add a runner"
      description="A runner is the program that runs the sandboxes of one host. Add a second runner to use a second disk."
      isOpen
      onClose={onClose}
      submit="Add"
      isSubmitDisabled={name.trim() === ''}
      onSubmit={() => onAdd(name.trim(), regionId)}
    >
      <TextField label="Name" hint="Small letters, digits and dashes" maxLength={64} value={name} onChange={setName} />
      <SelectField
        label="Region"
        value={regionId}
        onChange={setRegionId}
        options={[
          { value: '', label: 'Default' },
          ...shared.map(({ id, name: text }) => ({ value: id, label: shownText(text) })),
        ]}
      />
    </FormDialog>
  )
}

/** Shows the command that starts a new runner, and the runner's token. The server does not send the token a second time. */
export const JoinDialog = ({ runner, onClose }: { runner: NewRunner; onClose: () => void }) => (
  <Dialog title={`Start the runner ${runner.id}`} isOpen onClose={onClose} isWide>
    <p>Run this as root on the server’s host. Choose a directory on the disk that the runner will use.</p>
    <div className="notice warn">Copy it now: the token is not shown again.</div>
    <CodeBlock
      label="Copy the command"
      code={[
        `export ALCOVE_RUNNER_KEY=${runner.apiKey}`,
        `./alcove runner --join ${location.origin} --data /mnt/${runner.id}/alcove`,
      ].join('\n')}
    />
    <div className="dialog-actions">
      <Button kind="primary" onClick={onClose}>
        Done
      </Button>
    </div>
  </Dialog>
)

type RemoveProps = { runner: Runner; onRemove: (force: boolean) => Promise<unknown>; onClose: () => void }

/** Removes a runner for good. A runner that still has sandboxes is removed only if the operator ticks a box. */
export const RemoveRunnerDialog = ({ runner, onRemove, onClose }: RemoveProps) => {
  const [isForced, setForced] = useState(false)
  return (
    <Confirm
      title={`Remove the runner ${runner.name}?`}
      verb={isForced ? 'Remove with its sandboxes' : 'Remove'}
      typed={isForced ? runner.name : undefined}
      isOpen
      onClose={onClose}
      onConfirm={() => onRemove(isForced)}
    >
      <div className="stack">
        <p>
          The token of the runner is refused from now on, and the name cannot be used again. A runner that still has
          disks of sandboxes ({runner.sandboxes} now) cannot be removed: drain the runner and archive the sandboxes
          first.
        </p>
        <CheckField
          label="The disks of the runner are lost: also remove its sandboxes and volumes"
          checked={isForced}
          onChange={setForced}
        />
      </div>
    </Confirm>
  )
}
