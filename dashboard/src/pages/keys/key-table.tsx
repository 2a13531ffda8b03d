import { PermissionList } from '../../permissions/permission-choice.tsx'
import { session } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { Table, wide } from '../../ui/table.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import type { Key } from './page.tsx'

const End = ({ time }: { time: string | null }) => {
  if (time === null) return <span className="muted">Never</span>
  if (Date.parse(time) <= session.now()) return <span className="badge danger">Ended</span>
  return <TimeAgo time={time} />
}

type Props = {
  keys: readonly Key[]
  /** The e-mail addresses of the members, by user id. */
  emails: ReadonlyMap<string, string>
  showsOwner: boolean
  onDelete: (key: Key) => void
}

export const KeyTable = ({ keys, emails, showsOwner, onDelete }: Props) => (
  <div className="card">
    <Table
      label="Keys"
      columns={['Name', showsOwner && wide('Owner'), 'Permissions', wide('Created'), wide('Last used'), 'Ends']}
      rows={keys}
    >
      {(key) => (
        <tr key={`${key.userId} ${key.name}`}>
          <td className="wrap-anywhere">
            <bdi>
              <strong>{key.name}</strong>
            </bdi>
            <div className="muted small mono wide-only">{key.value}</div>
            {showsOwner && <div className="muted small narrow-only">{emails.get(key.userId) ?? 'Former member'}</div>}
          </td>
          {showsOwner && (
            <td className="wrap-anywhere wide-only">
              <bdi>{emails.get(key.userId) ?? 'Former member'}</bdi>
            </td>
          )}
          <td>
            <PermissionList permissions={key.permissions} />
          </td>
          <td className="wide-only">
            <TimeAgo time={key.createdAt} />
          </td>
          <td className="wide-only">
            {key.lastUsedAt === null ? <span className="muted">Never</span> : <TimeAgo time={key.lastUsedAt} />}
          </td>
          <td>
            <End time={key.expiresAt} />
          </td>
          <td className="number">
            <Button compact kind="danger" aria-label={`Delete the key ${key.name}`} onClick={() => onDelete(key)}>
              Delete
            </Button>
          </td>
        </tr>
      )}
    </Table>
    {keys.length === 0 && <div className="waiting">No key fits.</div>}
  </div>
)
