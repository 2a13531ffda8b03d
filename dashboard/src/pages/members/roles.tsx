import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import { PermissionList } from '../../permissions/permission-choice.tsx'
import { type Role, useRoles } from '../../roles/use-roles.ts'
import { useMembers } from '../../session/people.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { WhenLoaded } from '../../ui/page.tsx'
import { RowButtons, Table, wide } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { RoleDialog } from './role-dialog.tsx'
import { usePeopleChanged } from './use-invitations.ts'

/** Lists the roles of the organization, and the global roles, which nobody can change. */
export const Roles = ({ isOwner }: { isOwner: boolean }) => {
  const organizationId = useOrganizationId()
  const roles = useRoles()
  const members = useMembers().data ?? []
  const changed = usePeopleChanged()
  const [changing, setChanging] = useState<Role>()
  const [deleting, setDeleting] = useState<Role>()
  const countOf = (roleId: string) =>
    members.filter(({ role, assignedRoles }) => role === 'member' && assignedRoles.some(({ id }) => id === roleId))
      .length
  const remove = async ({ id, name }: Role) => {
    const path = { organizationId, roleId: id }
    await answerOf(control.DELETE('/organizations/{organizationId}/roles/{roleId}', { params: { path } } as never))
    changed()
    toast(`The role ${name} is deleted`)
  }
  return (
    <WhenLoaded query={roles}>
      {(list) => (
        <div className="card">
          <Table label="Roles" columns={['Role', 'Permissions', wide('Members')]} rows={list}>
            {(role) => (
              <tr key={role.id}>
                <td className="wrap-anywhere">
                  <bdi>
                    <strong>{role.name}</strong>
                  </bdi>
                  <div className="muted small">
                    <bdi>{role.description}</bdi>
                  </div>
                </td>
                <td>
                  <PermissionList permissions={role.permissions} />
                </td>
                <td className="wide-only">{countOf(role.id)}</td>
                <RowButtons>
                  {role.isGlobal ? (
                    <span className="muted small wide-only">Built in</span>
                  ) : (
                    isOwner && (
                      <>
                        <Button compact aria-label={`Change the role ${role.name}`} onClick={() => setChanging(role)}>
                          Change…
                        </Button>
                        <Button
                          compact
                          kind="danger"
                          aria-label={`Delete the role ${role.name}`}
                          onClick={() => setDeleting(role)}
                        >
                          Delete
                        </Button>
                      </>
                    )
                  )}
                </RowButtons>
              </tr>
            )}
          </Table>
          {changing !== undefined && <RoleDialog role={changing} onClose={() => setChanging(undefined)} />}
          <Confirm
            title="Delete this role?"
            verb="Delete the role"
            isOpen={deleting !== undefined}
            onClose={() => setDeleting(undefined)}
            onConfirm={() => remove(deleting!)}
          >
            <p>
              <strong className="wrap-anywhere">{deleting?.name}</strong> is removed from all members and invitations
              that have it. Keys of these members lose the permissions that only this role gave.
            </p>
          </Confirm>
        </div>
      )}
    </WhenLoaded>
  )
}
