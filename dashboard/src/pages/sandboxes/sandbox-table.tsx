import { Link, useNavigate } from '@tanstack/react-router'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef } from 'react'
import type { SandboxRow } from '../../api/client.ts'
import { CopyText } from '../../ui/copy.tsx'
import { MenuItem, MenuLine } from '../../ui/menu.tsx'
import { RowMenu } from '../../ui/row-menu.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { type ActionName, actions, isPossible } from './actions.ts'
import type { ListSearch, Sort } from './search.ts'
import { UsageBars } from './usage-bars.tsx'

const rowHeight = 44

const columns: { name: string; className: string; sort?: Sort }[] = [
  { name: 'Name', className: 'col-name', sort: 'name' },
  { name: 'State', className: 'col-state' },
  { name: 'CPU and memory', className: 'col-usage' },
  { name: 'Snapshot', className: 'col-snapshot' },
  { name: 'Labels', className: 'col-labels' },
  { name: 'Region', className: 'col-region' },
  { name: 'Last activity', className: 'col-time', sort: 'lastActivityAt' },
  { name: 'Created', className: 'col-time', sort: 'createdAt' },
]

type TableProps = {
  rows: readonly SandboxRow[]
  search: ListSearch
  selected: ReadonlySet<string>
  onSelect: (ids: readonly string[], isSelected: boolean) => void
  onAction: (name: ActionName, row: SandboxRow) => void
  /** Called when the reader scrolls near the last row, so that more rows are fetched. */
  onEnd: () => void
}

const SortHeader = ({ name, sort, search }: { name: string; sort: Sort; search: ListSearch }) => {
  const navigate = useNavigate()
  const isCurrent = (search.sort ?? 'lastActivityAt') === sort
  const isAscending = (search.order ?? 'desc') === 'asc'
  const turn = () =>
    void navigate({ to: '/sandboxes', search: { ...search, sort, order: isCurrent && !isAscending ? 'asc' : 'desc' } })
  return (
    <button type="button" className="sort" onClick={turn}>
      {name} {isCurrent && <span aria-hidden="true">{isAscending ? '↑' : '↓'}</span>}
    </button>
  )
}

const sortOf = (sort: Sort | undefined, search: ListSearch) => {
  if (sort === undefined || (search.sort ?? 'lastActivityAt') !== sort) return undefined
  return (search.order ?? 'desc') === 'asc' ? 'ascending' : 'descending'
}

const Labels = ({ labels }: { labels: Record<string, string> }) =>
  Object.entries(labels).map(([key, value]) => (
    <span key={key} className="badge plain" title={`${key}=${value}`}>
      <span className="cut" style={{ maxWidth: '14ch' }}>
        {value === '' ? key : `${key}=${value}`}
      </span>
    </span>
  ))

const SandboxMenu = ({ row, onAction }: Pick<TableProps, 'onAction'> & { row: SandboxRow }) => (
  <RowMenu name={row.name}>
    {(Object.keys(actions) as ActionName[])
      .filter((name) => name !== 'delete' && isPossible(name, row))
      .map((name) => (
        <MenuItem key={name} onSelect={() => onAction(name, row)}>
          {actions[name].label}
        </MenuItem>
      ))}
    <MenuLine />
    <MenuItem isDanger onSelect={() => onAction('delete', row)}>
      Delete…
    </MenuItem>
  </RowMenu>
)

/** The list of sandboxes. Only the rows in view are drawn, so that a list of 100,000 sandboxes still scrolls well. */
export const SandboxTable = ({ rows, search, selected, onSelect, onAction, onEnd }: TableProps) => {
  const list = useRef<HTMLDivElement>(null)
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollMargin: list.current?.offsetTop ?? 0,
    getItemKey: (index) => rows[index]!.id,
  })
  const items = virtual.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (last >= rows.length - 40) onEnd()
  }, [last, rows.length, onEnd])
  const areAllSelected = rows.length > 0 && rows.every(({ id }) => selected.has(id))
  return (
    <div className="card sandbox-table" role="table" aria-label="Sandboxes" aria-rowcount={rows.length + 1}>
      <div className="sandbox-row head" role="row">
        <span role="columnheader">
          <input
            type="checkbox"
            aria-label="Select all that are loaded"
            checked={areAllSelected}
            onChange={(event) =>
              onSelect(
                rows.map(({ id }) => id),
                event.target.checked,
              )
            }
          />
        </span>
        {columns.map(({ name, className, sort }) => (
          <span key={name} role="columnheader" className={className} aria-sort={sortOf(sort, search)}>
            {sort === undefined ? name : <SortHeader name={name} sort={sort} search={search} />}
          </span>
        ))}
        <span role="columnheader">
          <span className="visually-hidden">Actions</span>
        </span>
      </div>
      <div ref={list} role="rowgroup" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
        {items.map((item) => {
          const row = rows[item.index]!
          return (
            <div
              key={item.key}
              className="sandbox-row"
              role="row"
              aria-rowindex={item.index + 2}
              style={{
                position: 'absolute',
                insetInline: 0,
                height: rowHeight,
                transform: `translateY(${item.start - virtual.options.scrollMargin}px)`,
              }}
            >
              <span role="cell">
                <input
                  type="checkbox"
                  aria-label={`Select ${row.name}`}
                  checked={selected.has(row.id)}
                  onChange={(event) => onSelect([row.id], event.target.checked)}
                />
              </span>
              <span role="cell" className="col-name">
                <Link to="/sandboxes/$sandboxId" params={{ sandboxId: row.id }} className="cut name">
                  {row.name}
                </Link>
                <CopyText text={row.id} shown={row.id.slice(0, 8)} />
              </span>
              <span role="cell" className="col-state" title={row.errorReason}>
                <StateBadge state={row.state} />
              </span>
              <span role="cell" className="col-usage">
                {row.state === 'started' && <UsageBars sandboxId={row.id} />}
              </span>
              <span role="cell" className="col-snapshot cut" title={row.snapshot}>
                {row.snapshot ?? ''}
              </span>
              <span role="cell" className="col-labels">
                <Labels labels={row.labels} />
              </span>
              <span role="cell" className="col-region cut">
                {row.target}
              </span>
              <span role="cell" className="col-time">
                <TimeAgo time={row.lastActivityAt} />
              </span>
              <span role="cell" className="col-time">
                <TimeAgo time={row.createdAt} />
              </span>
              <span role="cell">
                <SandboxMenu row={row} onAction={onAction} />
              </span>
            </div>
          )
        })}
      </div>
    </div>
  )
}
