import { RoleChoice } from '../../roles/role-choice.tsx'
import { SelectField } from '../../ui/field.tsx'

/** What somebody may do: everything as an owner, or as a member what their roles give. */
export type Access = { role: 'owner' | 'member'; assignedRoleIds: readonly string[] }

/** What the API takes. An owner needs no roles. */
export const accessBody = ({ role, assignedRoleIds }: Access) => ({
  role,
  assignedRoleIds: role === 'owner' ? [] : [...assignedRoleIds],
})

/** The choice of an {@link Access}. */
export const AccessFields = ({ value, onChange }: { value: Access; onChange: (value: Access) => void }) => {
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
        <RoleChoice
          label="Roles"
          chosen={value.assignedRoleIds}
          onChange={(assignedRoleIds) => onChange({ ...value, assignedRoleIds })}
        />
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
