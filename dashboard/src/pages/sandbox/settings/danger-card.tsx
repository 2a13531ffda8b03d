import { useState } from 'react'
import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { Button } from '../../../ui/button.tsx'
import { Confirm } from '../../../ui/confirm.tsx'
import { isPossible } from '../../sandboxes/actions.ts'
import { ArchiveDialog, DeleteDialog, SnapshotDialog } from '../dialogs.tsx'
import { isAtRest } from '../possible.ts'
import { useChange } from '../use-change.ts'
import { SettingCard } from './setting-card.tsx'

type Props = { sandbox: Sandbox; onClose: () => void }

const KillDialog = ({ sandbox, onClose }: Props) => {
  const { change } = useChange(sandbox.id)
  const stop = () =>
    change(
      answerOf(
        control.POST('/sandbox/{sandboxIdOrName}/stop', {
          params: { path: { sandboxIdOrName: sandbox.id }, query: { force: true } },
        } as never),
      ),
    )
  return (
    <Confirm title={`Stop ${sandbox.name} by force?`} verb="Stop by force" isOpen onClose={onClose} onConfirm={stop}>
      All processes are killed immediately and cannot save what they hold in memory. The files stay.
    </Confirm>
  )
}

/** Buttons for the actions that end, move or copy a sandbox. A sentence beside each button says what the button does. */
export const DangerCard = ({ sandbox }: { sandbox: Sandbox }) => {
  const [open, setOpen] = useState<string>()
  const { state } = sandbox
  const rows = [
    {
      name: 'snapshot',
      label: 'Make a snapshot…',
      text: 'Saves the current files as a snapshot. New sandboxes can be created from the snapshot.',
      isPossible: isAtRest(state),
      Dialog: SnapshotDialog,
    },
    {
      name: 'kill',
      label: 'Stop by force…',
      text: 'Kills all processes immediately. The files stay.',
      isPossible: isPossible('stop', sandbox),
      Dialog: KillDialog,
    },
    {
      name: 'archive',
      label: 'Archive…',
      text: 'Moves the files to the object store. A running sandbox is stopped first. “Start” brings the files back.',
      isPossible: isAtRest(state),
      Dialog: ArchiveDialog,
    },
    {
      name: 'delete',
      label: 'Delete…',
      text: 'Ends all processes and deletes the files permanently.',
      isPossible: isPossible('delete', sandbox),
      Dialog: DeleteDialog,
    },
  ]
  const Dialog = rows.find(({ name }) => name === open)?.Dialog
  return (
    <SettingCard title="Keep or end this sandbox" isDanger>
      {rows.map(({ name, label, text, isPossible: canDo }) => (
        <div key={name} className="danger-row">
          <span>{text}</span>
          <Button kind={name === 'snapshot' ? undefined : 'danger'} disabled={!canDo} onClick={() => setOpen(name)}>
            {label}
          </Button>
        </div>
      ))}
      {Dialog !== undefined && <Dialog sandbox={sandbox} onClose={() => setOpen(undefined)} />}
    </SettingCard>
  )
}
