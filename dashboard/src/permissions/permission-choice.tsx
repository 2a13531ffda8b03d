import { Button } from '../ui/button.tsx'
import { CheckField } from '../ui/field.tsx'
import { allPermissions, type Permission, permissionGroups, summaryOf, workPermissions } from './permissions.ts'
import './permissions.css'

type Props = {
  chosen: ReadonlySet<Permission>
  onChange: (chosen: ReadonlySet<Permission>) => void
  /** Whether the user has this permission. Users can give others only permissions that they have. */
  holds?: (permission: Permission) => boolean
}

/** A checklist of all permissions. A sentence beside each one says what it allows. */
export const PermissionChoice = ({ chosen, onChange, holds = () => true }: Props) => {
  const choose = (permissions: readonly Permission[]) => onChange(new Set(permissions.filter(holds)))
  const toggle = (permission: Permission, isChosen: boolean) => {
    const next = new Set(chosen)
    if (isChosen) next.add(permission)
    else next.delete(permission)
    onChange(next)
  }
  const checksOf = (permissions: Partial<Record<Permission, string>>) =>
    (Object.entries(permissions) as [Permission, string][]).map(([permission, sentence]) => (
      <CheckField
        key={permission}
        label={
          <>
            {sentence} <code className="muted">{permission}</code>
          </>
        }
        checked={chosen.has(permission)}
        disabled={!holds(permission)}
        onChange={(isChosen) => toggle(permission, isChosen)}
      />
    ))
  return (
    <fieldset className="permission-choice">
      <legend className="field-label">Permissions</legend>
      <div className="row">
        <Button compact onClick={() => choose(allPermissions)}>
          Everything
        </Button>
        <Button compact onClick={() => choose(workPermissions)}>
          Sandboxes, snapshots and volumes
        </Button>
        <Button compact onClick={() => choose([])}>
          Nothing
        </Button>
      </div>
      <div className="permission-groups">
        {permissionGroups.map((group) =>
          'hint' in group ? (
            <details key={group.name}>
              <summary>{group.name}</summary>
              <div className="permission-group">
                <div className="muted small">{group.hint}</div>
                {checksOf(group.permissions)}
              </div>
            </details>
          ) : (
            <div key={group.name} className="permission-group">
              <h3>{group.name}</h3>
              {checksOf(group.permissions)}
            </div>
          ),
        )}
      </div>
    </fieldset>
  )
}

/** Shows a list of permissions as a short summary. A click opens the list, which says what each permission allows. */
export const PermissionList = ({ permissions }: { permissions: readonly Permission[] }) => {
  if (permissions.length === 0) return <span className="muted">None</span>
  return (
    <details className="permission-list">
      <summary>{summaryOf(permissions)}</summary>
      <ul>
        {permissionGroups.flatMap((group) =>
          (Object.entries(group.permissions) as [Permission, string][])
            .filter(([permission]) => permissions.includes(permission))
            .map(([permission, sentence]) => <li key={permission}>{sentence}</li>),
        )}
      </ul>
    </details>
  )
}
