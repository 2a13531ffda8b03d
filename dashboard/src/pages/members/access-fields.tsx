import { RoleChoice } from '../../roles/role-choice.tsx'
import { SelectField } from '../../ui/field.tsx'

/** What a user may do. An owner may do everything. A member may do what the assigned roles allow. */
export type Access = { role: 'owner' | 'member'; assignedRoleIds: readonly string[] }

/** The fields `role` and `assignedRoleIds` of a request. An owner has no assigned roles, because an owner may do everything. */
export const accessBody = ({ role, assignedRoleIds }: Access) => ({
  role,
  assignedRoleIds: role === 'owner' ? [] : [...assignedRoleIds],
})

/** The fields of a form in which an {@link Access} is chosen. */
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

/** Shows an {@link Access} as text, for a table. */
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
