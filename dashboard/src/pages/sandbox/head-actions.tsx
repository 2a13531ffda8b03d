import { useState } from 'react'
import type { Sandbox } from '../../api/client.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Icon } from '../../ui/icons.tsx'
import { Menu, MenuItem, MenuLine } from '../../ui/menu.tsx'
import { actions, isPossible } from '../sandboxes/actions.ts'
import { ArchiveDialog, DeleteDialog, ForkDialog, SnapshotDialog } from './dialogs.tsx'
import { isAtRest } from './possible.ts'
import { useChange } from './use-change.ts'

const direct = ['start', 'recover', 'pause', 'stop'] as const

const dialogs = { fork: ForkDialog, snapshot: SnapshotDialog, archive: ArchiveDialog, delete: DeleteDialog } as const

/** The buttons in the head of the page, for the actions that are possible in the sandbox's present state. */
export const HeadActions = ({ sandbox }: { sandbox: Sandbox }) => {
  const { isBusy, act } = useChange(sandbox.id)
  const [open, setOpen] = useState<keyof typeof dialogs>()
  const Dialog = open === undefined ? undefined : dialogs[open]
  const canCopy = isAtRest(sandbox.state)
  return (
    <>
      {direct
        .filter((name) => isPossible(name, sandbox))
        .map((name, index) => (
          <Button
            key={name}
            kind={index === 0 && sandbox.state !== 'started' ? 'primary' : undefined}
            disabled={isBusy}
            onClick={() => void act(actions[name].label, actions[name].run(sandbox.id))}
          >
            {actions[name].label}
          </Button>
        ))}
      <Menu
        trigger={
          <IconButton label="More actions">
            <Icon name="more" />
          </IconButton>
        }
      >
        <MenuItem onSelect={() => setOpen('fork')} isDisabled={!canCopy}>
          Fork…
        </MenuItem>
        <MenuItem onSelect={() => setOpen('snapshot')} isDisabled={!canCopy}>
          Make a snapshot…
        </MenuItem>
        <MenuItem onSelect={() => setOpen('archive')} isDisabled={!canCopy}>
          Archive…
        </MenuItem>
        <MenuLine />
        <MenuItem onSelect={() => setOpen('delete')} isDanger isDisabled={!isPossible('delete', sandbox)}>
          Delete…
        </MenuItem>
      </Menu>
      {Dialog !== undefined && <Dialog sandbox={sandbox} onClose={() => setOpen(undefined)} />}
    </>
  )
}
