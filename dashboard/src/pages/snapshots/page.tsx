import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useCallback, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Empty, Page, WhenLoaded } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { CreateSnapshotDialog } from './create-dialog.tsx'
import { isFiltered, type SnapshotPage, type SnapshotSearch } from './search.ts'
import { useSnapshotActions } from './snapshot-dialogs.tsx'
import { SnapshotTable } from './snapshot-table.tsx'
import { useSnapshots } from './use-snapshots.ts'

const route = getRouteApi('/snapshots')

const Filters = ({ search }: { search: SnapshotSearch }) => {
  const navigate = useNavigate()
  const { name, sourceSandboxId, sort } = search
  const show = useCallback(
    // When a filter changes, the list goes back to its first page.
    ({ page: _, ...next }: SnapshotSearch) => void navigate({ to: '/snapshots', search: next, replace: true }),
    [navigate],
  )
  const find = useCallback(
    (text: string) => {
      const { name: _, ...others } = search
      show(text === '' ? others : { ...others, name: text })
    },
    [show, search],
  )
  const without = (...names: (keyof SnapshotSearch)[]) =>
    show(Object.fromEntries(Object.entries(search).filter(([each]) => !names.includes(each as keyof SnapshotSearch))))
  return (
    <div className="row">
      <SearchField label="Name" placeholder="Part of a name" value={name ?? ''} onChange={find} />
      {sourceSandboxId !== undefined && (
        <Button compact onClick={() => without('sourceSandboxId')}>
          Of the sandbox <span className="mono">{sourceSandboxId.slice(0, 8)}</span> ×
        </Button>
      )}
      {sort !== undefined && (
        <Button compact kind="quiet" onClick={() => without('sort', 'order')}>
          Usual order
        </Button>
      )}
    </div>
  )
}

const Found = ({ found, search, onCreate }: { found: SnapshotPage; search: SnapshotSearch; onCreate: () => void }) => {
  const navigate = useNavigate()
  const { begin, dialogs } = useSnapshotActions()
  const go = (page: number) => void navigate({ to: '/snapshots', search: { ...search, page } })
  if (found.items.length === 0)
    return isFiltered(search) || found.total > 0 ? (
      <Empty
        title="No snapshot was found"
        action={<Button onClick={() => void navigate({ to: '/snapshots', search: {} })}>Show all snapshots</Button>}
      >
        No snapshot matches these filters.
      </Empty>
    ) : (
      <Empty
        title="No snapshots yet"
        action={
          <Button kind="primary" onClick={onCreate}>
            Create snapshot
          </Button>
        }
      >
        A snapshot is a named image from which sandboxes are made. Make a snapshot from an image or a Dockerfile.
      </Empty>
    )
  return (
    <>
      <SnapshotTable rows={found.items} search={search} onAction={begin} />
      <Pager page={search.page ?? 1} of={found.totalPages} onPage={go} />
      {dialogs}
    </>
  )
}

const SnapshotsPage = () => {
  const search = route.useSearch()
  const query = useSnapshots(search)
  const [isCreating, setCreating] = useState(false)
  return (
    <Page
      title="Snapshots"
      description="Named images from which sandboxes are made."
      actions={
        <Button kind="primary" onClick={() => setCreating(true)}>
          Create snapshot
        </Button>
      }
    >
      <Filters search={search} />
      <WhenLoaded query={query}>
        {(found) => <Found found={found} search={search} onCreate={() => setCreating(true)} />}
      </WhenLoaded>
      {isCreating && <CreateSnapshotDialog onClose={() => setCreating(false)} />}
    </Page>
  )
}

export default SnapshotsPage
