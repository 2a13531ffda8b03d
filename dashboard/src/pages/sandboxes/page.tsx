import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useState } from 'react'
import type { SandboxRow } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { ErrorNotice } from '../../ui/error-notice.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { type ActionName, actions, isPossible, runOnMany } from './actions.ts'
import { CreateDialog } from './create-dialog.tsx'
import { Filters } from './filters.tsx'
import { FirstSteps } from './first-steps.tsx'
import { SandboxTable } from './sandbox-table.tsx'
import { activeFilters } from './search.ts'
import { useSandboxes } from './use-sandboxes.ts'
import './sandboxes.css'

const route = getRouteApi('/sandboxes')

const bulkActions = ['start', 'stop', 'pause', 'archive', 'delete'] as const satisfies readonly ActionName[]

const SandboxesPage = () => {
  const search = route.useSearch()
  const { rows, error, isPending, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useSandboxes(search)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [toDelete, setToDelete] = useState<readonly SandboxRow[]>([])
  const [progress, setProgress] = useState<{ done: number; of: number }>()
  const [isCreating, setCreating] = useState(false)

  const select = (ids: readonly string[], isSelected: boolean) => {
    const next = new Set(selected)
    for (const id of ids) isSelected ? next.add(id) : next.delete(id)
    setSelected(next)
  }
  const chosen = rows.filter(({ id }) => selected.has(id))

  const run = async (name: ActionName, targets: readonly SandboxRow[]) => {
    setProgress({ done: 0, of: targets.length })
    await runOnMany(name, targets, (done) => setProgress({ done, of: targets.length }))
    setProgress(undefined)
    setSelected(new Set())
    void refetch()
  }
  const begin = (name: ActionName, targets: readonly SandboxRow[]) => {
    if (name === 'delete') setToDelete(targets)
    else void run(name, targets)
  }
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])

  const isFiltered = activeFilters(search).length > 0
  const [first] = toDelete
  return (
    <Page
      title="Sandboxes"
      description={rows.length > 0 ? `${rows.length}${hasNextPage ? '+' : ''} shown` : undefined}
      actions={
        <Button kind="primary" onClick={() => setCreating(true)}>
          Create sandbox
        </Button>
      }
    >
      <Filters search={search} />
      {error !== null && <ErrorNotice error={error} retry={() => void refetch()} />}
      {isPending && error === null && <div className="waiting">Loading…</div>}
      {!isPending && rows.length === 0 && !isFiltered && <FirstSteps />}
      {!isPending && rows.length === 0 && isFiltered && (
        <Empty title="No sandbox matches these filters">Remove a filter, or look for another name.</Empty>
      )}
      {rows.length > 0 && (
        <SandboxTable
          rows={rows}
          search={search}
          selected={selected}
          onSelect={select}
          onAction={(name, row) => begin(name, [row])}
          onEnd={onEnd}
        />
      )}
      {chosen.length > 0 && (
        <div className="bulk" role="region" aria-label="With the selected sandboxes">
          <strong>{chosen.length} selected</strong>
          {bulkActions.map((name) => {
            const possible = chosen.filter((row) => isPossible(name, row))
            if (possible.length === 0) return null
            return (
              <Button
                key={name}
                compact
                kind={name === 'delete' ? 'danger' : undefined}
                disabled={progress !== undefined}
                onClick={() => begin(name, possible)}
              >
                {actions[name].label} {possible.length}
              </Button>
            )
          })}
          <Button compact kind="quiet" onClick={() => setSelected(new Set())}>
            Clear
          </Button>
          {progress !== undefined && (
            <span role="status" className="muted">
              {progress.done} of {progress.of}
            </span>
          )}
        </div>
      )}
      <Confirm
        title={toDelete.length === 1 ? `Delete ${first?.name}?` : `Delete ${toDelete.length} sandboxes?`}
        verb={toDelete.length === 1 ? 'Delete' : `Delete ${toDelete.length}`}
        isOpen={toDelete.length > 0}
        onClose={() => setToDelete([])}
        onConfirm={() => run('delete', toDelete)}
      >
        All processes end, and the files are deleted. This cannot be undone. Snapshots and volumes stay.
      </Confirm>
      {isCreating && <CreateDialog onClose={() => setCreating(false)} />}
    </Page>
  )
}

export default SandboxesPage
