import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useOrganizationId } from '../../session/use-session.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { toast, toastError } from '../../ui/toast.tsx'
import { CreateDialog } from '../sandboxes/create-dialog.tsx'
import { activate, deactivate, remove } from './actions.ts'
import type { Snapshot } from './search.ts'

export type SnapshotAction = 'sandbox' | 'activate' | 'deactivate' | 'delete'

/**
 * Actions on snapshots for a page. The function `begin` activates a snapshot without a dialog. For any other action, it opens a
 * dialog. The page must draw `dialogs`.
 */
export const useSnapshotActions = (onDeleted: () => void = () => {}) => {
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const [asked, setAsked] = useState<{ action: SnapshotAction; snapshot: Snapshot }>()
  const refetch = () => queries.invalidateQueries({ queryKey: [organizationId, 'snapshots'] })

  const run = async (what: string, call: Promise<unknown>) => {
    try {
      await call
      toast(what)
    } catch (error) {
      toastError('That did not work', error)
    }
    void refetch()
  }
  const begin = (action: SnapshotAction, snapshot: Snapshot) => {
    if (action === 'activate') void run(`${shownText(snapshot.name)} is being activated`, activate(snapshot.id))
    else setAsked({ action, snapshot })
  }
  const close = () => setAsked(undefined)
  const snapshot = asked?.snapshot
  const name = shownText(snapshot?.name ?? '')
  const dialogs = (
    <>
      {asked?.action === 'sandbox' && <CreateDialog snapshot={asked.snapshot.name} onClose={close} />}
      <Confirm
        title={`Deactivate ${name}?`}
        verb="Deactivate"
        isOpen={asked?.action === 'deactivate'}
        onClose={close}
        onConfirm={async () => {
          await deactivate(snapshot!.id)
          void refetch()
        }}
      >
        No new sandboxes can be made from this snapshot until it is activated again. Existing sandboxes stay.
      </Confirm>
      <Confirm
        title={`Delete ${name}?`}
        verb="Delete"
        isOpen={asked?.action === 'delete'}
        onClose={close}
        onConfirm={async () => {
          await remove(snapshot!.id)
          toast(`${name} is deleted`)
          onDeleted()
          void refetch()
        }}
      >
        No new sandboxes can be made from this snapshot. Existing sandboxes stay. This cannot be undone.
      </Confirm>
    </>
  )
  return { begin, dialogs }
}
