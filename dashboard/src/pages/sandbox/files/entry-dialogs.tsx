import { useState } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import type { FileInfo } from '../../../api/toolbox-client.ts'
import { Confirm } from '../../../ui/confirm.tsx'
import { FormDialog } from '../../../ui/dialog.tsx'
import { TextField } from '../../../ui/field.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { isThere, makeDirectory, move, remove, setMode, writeText } from './file-calls.ts'
import { join, problemOfName } from './paths.ts'

type DialogProps = { sandbox: Sandbox; onClose: () => void; onDone: (path?: string) => void }

/** Asks for the name of a new file or directory, and makes it. */
export const NewDialog = ({
  sandbox,
  directory,
  kind,
  onClose,
  onDone,
}: DialogProps & { directory: string; kind: 'file' | 'directory' }) => {
  const [name, setName] = useState('')
  const problem = problemOfName(name)
  const make = async () => {
    const path = join(directory, name)
    if (await isThere(sandbox, path)) throw new Error('A file or directory with this name already exists.')
    if (kind === 'directory') await makeDirectory(sandbox, path)
    else await writeText(sandbox, path, '')
    onDone(path)
  }
  return (
    <FormDialog
      title={`New ${kind}`}
      isOpen
      onClose={onClose}
      submit="Create"
      isSubmitDisabled={problem !== undefined}
      onSubmit={make}
    >
      <TextField
        label="Name"
        hint={`In ${shownName(directory)}`}
        value={name}
        error={name === '' ? undefined : problem}
        onChange={setName}
      />
    </FormDialog>
  )
}

/** Asks for the new path of an entry and moves the entry there. A path that exists already is refused. */
export const MoveDialog = ({ sandbox, entry, onClose, onDone }: DialogProps & { entry: FileInfo }) => {
  const [path, setPath] = useState(entry.path)
  return (
    <FormDialog
      title="Rename or move"
      isOpen
      onClose={onClose}
      submit="Move"
      isSubmitDisabled={!path.startsWith('/') || path === entry.path}
      onSubmit={async () => {
        await move(sandbox, entry.path, path)
        onDone()
      }}
    >
      <TextField
        label="New path"
        hint="An absolute path. An existing file or directory is not replaced."
        value={path}
        onChange={setPath}
      />
    </FormDialog>
  )
}

/** Asks for the permissions of an entry, as an octal number. */
export const ModeDialog = ({ sandbox, entry, onClose, onDone }: DialogProps & { entry: FileInfo }) => {
  const [mode, setNewMode] = useState(entry.permissions)
  const isMode = /^0?[0-7]{3,4}$/.test(mode)
  return (
    <FormDialog
      title={`Permissions of ${shownName(entry.name, 80)}`}
      isOpen
      onClose={onClose}
      submit="Set"
      isSubmitDisabled={!isMode}
      onSubmit={async () => {
        await setMode(sandbox, entry.path, mode)
        onDone()
      }}
    >
      <TextField
        label="Mode"
        hint="An octal number for owner, group and others. 644: all can read, only the owner can write. 755: all can also run the file."
        value={mode}
        error={isMode ? undefined : 'Three or four digits from 0 to 7.'}
        onChange={setNewMode}
      />
    </FormDialog>
  )
}

export const DeleteDialog = ({ sandbox, entry, onClose, onDone }: DialogProps & { entry: FileInfo }) => {
  const name = shownName(entry.name, 80)
  return (
    <Confirm
      title={`Delete ${name}?`}
      verb="Delete"
      typed={entry.isDir ? name : undefined}
      isOpen
      onClose={onClose}
      onConfirm={async () => {
        await remove(sandbox, entry.path, entry.isDir)
        onDone()
      }}
    >
      <p className="wrap-anywhere">
        {entry.isDir ? 'This deletes the directory and all that is in it: ' : 'This deletes the file '}
        <code>{shownName(entry.path, 1000)}</code>. It cannot be undone.
      </p>
    </Confirm>
  )
}
