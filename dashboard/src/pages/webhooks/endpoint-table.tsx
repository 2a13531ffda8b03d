import { Button } from '../../ui/button.tsx'
import { MenuItem, MenuLine } from '../../ui/menu.tsx'
import { RowMenu } from '../../ui/row-menu.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { Table, wide } from '../../ui/table.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import type { Endpoint } from './use-webhooks.ts'

export type EndpointAction = 'attempts' | 'change' | 'rotate' | 'enable' | 'disable' | 'remove'
type OnAction = (action: EndpointAction, endpoint: Endpoint) => void

const State = ({ endpoint: { disabled, disabledReason, failingSince } }: { endpoint: Endpoint }) => {
  if (disabled)
    return (
      <>
        <span className="badge">disabled</span>
        {disabledReason !== null && <div className="muted small wrap-anywhere">{shownText(disabledReason)}</div>}
      </>
    )
  if (failingSince === null) return <span className="badge ok">enabled</span>
  return (
    <>
      <span className="badge danger">failing</span>
      <div className="muted small">
        since <TimeAgo time={failingSince} />
      </div>
    </>
  )
}

const Row = ({ endpoint, onAction }: { endpoint: Endpoint; onAction: OnAction }) => {
  const { url, description, events, disabled, createdAt } = endpoint
  return (
    <tr>
      <td className="wrap-anywhere">
        <div className="name">{shownText(url)}</div>
        {description !== '' && <div className="muted small">{shownText(description)}</div>}
      </td>
      <td className="small wide-only">{events.length === 0 ? 'All' : events.join(', ')}</td>
      <td>
        <State endpoint={endpoint} />
      </td>
      <td className="time wide-only">
        <TimeAgo time={createdAt} />
      </td>
      <td>
        <Button compact onClick={() => onAction('attempts', endpoint)}>
          Attempts
        </Button>
      </td>
      <td className="actions">
        <RowMenu name={url}>
          <MenuItem onSelect={() => onAction('change', endpoint)}>Change…</MenuItem>
          <MenuItem onSelect={() => onAction('rotate', endpoint)}>New secret…</MenuItem>
          {disabled ? (
            <MenuItem onSelect={() => onAction('enable', endpoint)}>Enable</MenuItem>
          ) : (
            <MenuItem onSelect={() => onAction('disable', endpoint)}>Disable…</MenuItem>
          )}
          <MenuLine />
          <MenuItem isDanger onSelect={() => onAction('remove', endpoint)}>
            Remove…
          </MenuItem>
        </RowMenu>
      </td>
    </tr>
  )
}

export const EndpointTable = ({ rows, onAction }: { rows: readonly Endpoint[]; onAction: OnAction }) => (
  <div className="card">
    <Table
      label="Endpoints"
      columns={[
        'Address',
        wide('Events'),
        'State',
        wide('Added'),
        <th key="Attempts">
          <span className="visually-hidden">Attempts</span>
        </th>,
      ]}
      rows={rows}
    >
      {(endpoint) => <Row key={endpoint.id} endpoint={endpoint} onAction={onAction} />}
    </Table>
  </div>
)
