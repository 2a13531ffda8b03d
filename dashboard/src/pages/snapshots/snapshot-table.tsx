import { Link, useNavigate } from '@tanstack/react-router'
import { useRegionName } from '../../api/use-regions.ts'
import { MenuItem, MenuLine } from '../../ui/menu.tsx'
import { RowMenu } from '../../ui/row-menu.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { SortHeader } from '../../ui/sort-header.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import { Table, wide } from '../../ui/table.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { canActivate, canDeactivate } from './actions.ts'
import type { Snapshot, SnapshotSearch, Sort } from './search.ts'
import type { SnapshotAction } from './snapshot-dialogs.tsx'
import { imageSizeText, resourcesText } from './texts.ts'

type OnAction = (action: SnapshotAction, snapshot: Snapshot) => void

/** Shows the progress of making the snapshot's image, such as "line 3, 40 %". */
export const ProgressText = ({ snapshot: { progress } }: { snapshot: Snapshot }) =>
  progress && (
    <span className="muted small">
      {shownText(progress.step)}, {progress.percent} %
    </span>
  )

const Actions = ({ snapshot, onAction }: { snapshot: Snapshot; onAction: OnAction }) => (
  <RowMenu name={snapshot.name}>
    <MenuItem isDisabled={snapshot.state !== 'active'} onSelect={() => onAction('sandbox', snapshot)}>
      Create a sandbox…
    </MenuItem>
    {canActivate(snapshot) && <MenuItem onSelect={() => onAction('activate', snapshot)}>Activate</MenuItem>}
    {canDeactivate(snapshot) && <MenuItem onSelect={() => onAction('deactivate', snapshot)}>Deactivate…</MenuItem>}
    <MenuLine />
    <MenuItem isDanger onSelect={() => onAction('delete', snapshot)}>
      Delete…
    </MenuItem>
  </RowMenu>
)

const Row = ({ snapshot, onAction }: { snapshot: Snapshot; onAction: OnAction }) => {
  const nameOf = useRegionName()
  const { id, name, general, state, regionIds, createdAt, lastUsedAt } = snapshot
  return (
    <tr>
      <td>
        <div className="row">
          <Link to="/snapshots/$snapshotId" params={{ snapshotId: id }} className="name wrap-anywhere">
            {shownText(name)}
          </Link>
          {general && <span className="badge plain">built-in</span>}
        </div>
      </td>
      <td>
        <div className="row">
          <StateBadge state={state} />
          <ProgressText snapshot={snapshot} />
        </div>
      </td>
      <td className="number wide-only">{imageSizeText(snapshot)}</td>
      <td className="time wide-only">{resourcesText(snapshot)}</td>
      <td className="wide-only">{regionIds === undefined ? 'All' : regionIds.map(nameOf).join(', ')}</td>
      <td className="time wide-only">
        <TimeAgo time={createdAt} />
      </td>
      <td className="time wide-only">
        <TimeAgo time={lastUsedAt} />
      </td>
      <td className="actions">
        <Actions snapshot={snapshot} onAction={onAction} />
      </td>
    </tr>
  )
}

type TableProps = { rows: readonly Snapshot[]; search: SnapshotSearch; onAction: OnAction }

export const SnapshotTable = ({ rows, search, onAction }: TableProps) => {
  const navigate = useNavigate()
  const header = (name: string, sort: Sort, className?: string) => (
    <SortHeader
      key={sort}
      className={className}
      name={name}
      order={search.sort === sort ? (search.order ?? 'desc') : undefined}
      onSort={(order) => {
        const { page: _, ...rest } = search
        void navigate({ to: '/snapshots', search: { ...rest, sort, order } })
      }}
    />
  )
  return (
    <div className="card">
      <Table
        label="Snapshots"
        columns={[
          header('Name', 'name'),
          header('State', 'state'),
          <th key="Size" className="number wide-only">
            Size
          </th>,
          wide('A sandbox has'),
          wide('Regions'),
          header('Created', 'createdAt', 'wide-only'),
          header('Last used', 'lastUsedAt', 'wide-only'),
        ]}
        rows={rows}
      >
        {(snapshot) => <Row key={snapshot.id} snapshot={snapshot} onAction={onAction} />}
      </Table>
    </div>
  )
}
