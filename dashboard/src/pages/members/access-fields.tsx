import { CheckField, SelectField } from '../../ui/field.tsx'
import { useRoles } from './use-roles.ts'

/** What somebody may do: everything as an owner, or as a member what their roles give. */
export type Access = { role: 'owner' | 'member'; assignedRoleIds: readonly string[] }

/** What the API takes. An owner needs no roles. */
export const accessBody = ({ role, assignedRoleIds }: Access) => ({
  role,
  assignedRoleIds: role === 'owner' ? [] : [...assignedRoleIds],
})

/** The choice of an {@link Access}. */
export const AccessFields = ({ value, onChange }: { value: Access; onChange: (value: Access) => void }) => {
  const roles = useRoles()
  const toggle = (id: string, isChosen: boolean) =>
    onChange({
      ...value,
      assignedRoleIds: isChosen
        ? [...value.assignedRoleIds, id]
        : value.assignedRoleIds.filter((assigned) => assigned !== id),
    })
  return (
    <>
      <SelectField
        label="Belongs as"
        value={value.role}
        onChange={(role) => onChange({ ...value, role: role as Access['role'] })}
        options={[
          { value: 'member', label: 'Member: may do what the roles allow' },
          { value: 'owner', label: 'Owner: may do everything, and manages members' },
        ]}
      />
      {value.role === 'member' && (
        <fieldset className="role-choice">
          <legend className="field-label">Roles</legend>
          {roles.data === undefined && <div className="muted">Loading…</div>}
          {roles.data?.map(({ id, name, description }) => (
            <CheckField
              key={id}
              checked={value.assignedRoleIds.includes(id)}
              onChange={(isChosen) => toggle(id, isChosen)}
              label={
                <>
                  <bdi>{name}</bdi> <span className="muted small wrap-anywhere">{description}</span>
                </>
              }
            />
          ))}
        </fieldset>
      )}
    </>
  )
}

/** The same in a table. */
export const AccessText = ({
  role,
  assignedRoles,
}: {
  role: 'owner' | 'member'
  assignedRoles: readonly { id: string; name: string }[]
}) =>
  role === 'owner' ? (
    <span className="badge plain info">Owner</span>
  ) : assignedRoles.length === 0 ? (
    <span className="muted">No roles</span>
  ) : (
    <span className="row" style={{ gap: 4 }}>
      {assignedRoles.map(({ id, name }) => (
        <span key={id} className="badge plain wrap-anywhere role-name">
          <bdi>{name}</bdi>
        </span>
      ))}
    </span>
  )
