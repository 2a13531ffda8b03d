import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { answerOf, control, type Sandbox } from '../../api/client.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { toast } from '../../ui/toast.tsx'
import { actions } from '../sandboxes/actions.ts'
import { useChange } from './use-change.ts'
import { nameOf } from './words.ts'

type Props = { sandbox: Sandbox; onClose: () => void }

const pathOf = ({ id }: Sandbox) => ({ path: { sandboxIdOrName: id } })

/** Asks for the name of a fork, makes the fork and opens its page. */
export const ForkDialog = ({ sandbox, onClose }: Props) => {
  const [name, setName] = useState('')
  const { change } = useChange(sandbox.id)
  const navigate = useNavigate()
  const fork = async () => {
    const body = name.trim() === '' ? {} : { name: name.trim() }
    const { id } = await change(
      answerOf(control.POST('/sandbox/{sandboxIdOrName}/fork', { params: pathOf(sandbox), body } as never)),
    )
    onClose()
    await navigate({ to: '/sandboxes/$sandboxId', params: { sandboxId: id } })
  }
  return (
    <FormDialog
      title={`Fork ${sandbox.name}`}
      description="Makes another sandbox with a copy of this sandbox’s present files. Processes are not copied. This sandbox does not change."
      isOpen
      onClose={onClose}
      submit="Fork"
      onSubmit={fork}
    >
      <TextField
        label="Name of the fork"
        hint="If you leave this empty, the name is the id of the fork."
        value={name}
        onChange={setName}
        maxLength={255}
      />
    </FormDialog>
  )
}

/** Asks for the name of a snapshot and makes the snapshot. */
export const SnapshotDialog = ({ sandbox, onClose }: Props) => {
  const [name, setName] = useState('')
  const { change } = useChange(sandbox.id)
  const make = async () => {
    const body = { name: name.trim() }
    await change(
      answerOf(control.POST('/sandbox/{sandboxIdOrName}/snapshot', { params: pathOf(sandbox), body } as never)),
    )
    toast(`The snapshot ${body.name} is being made`, 'The page “Snapshots” shows the progress.')
    onClose()
  }
  return (
    <FormDialog
      title={`Snapshot of ${sandbox.name}`}
      description="Saves the present files of this sandbox. New sandboxes can be made from the snapshot. This sandbox does not change."
      isOpen
      onClose={onClose}
      submit="Make the snapshot"
      isSubmitDisabled={name.trim() === ''}
      onSubmit={make}
    >
      <TextField label="Name of the snapshot" value={name} onChange={setName} maxLength={255} />
    </FormDialog>
  )
}

export const DeleteDialog = ({ sandbox, onClose }: Props) => {
  const { change } = useChange(sandbox.id)
  const name = nameOf(sandbox)
  return (
    <Confirm
      title={`Delete ${name}?`}
      verb="Delete"
      typed={name}
      isOpen
      onClose={onClose}
      onConfirm={() => change(actions.delete.run(sandbox.id))}
    >
      All processes end, and the files are deleted. This cannot be undone. Snapshots, forks and volumes stay.
    </Confirm>
  )
}

export const ArchiveDialog = ({ sandbox, onClose }: Props) => {
  const { change } = useChange(sandbox.id)
  return (
    <Confirm
      title={`Archive ${sandbox.name}?`}
      verb="Archive"
      isOpen
      onClose={onClose}
      onConfirm={() => change(actions.archive.run(sandbox.id))}
    >
      The files are moved to the object store and no longer use the disk of a runner.
      {sandbox.state !== 'stopped' && ' All processes end first.'} “Start” brings the sandbox back, which takes longer
      than usual.
    </Confirm>
  )
}
