import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import { PermissionChoice } from '../../permissions/permission-choice.tsx'
import type { Permission } from '../../permissions/permissions.ts'
import type { Role } from '../../roles/use-roles.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { toast } from '../../ui/toast.tsx'
import { usePeopleChanged } from './use-invitations.ts'

/** Makes or changes a role of the organization. */
export const RoleDialog = ({ role, onClose }: { role?: Role | undefined; onClose: () => void }) => {
  const organizationId = useOrganizationId()
  const changed = usePeopleChanged()
  const [name, setName] = useState(role?.name ?? '')
  const [description, setDescription] = useState(role?.description ?? '')
  const [chosen, setChosen] = useState<ReadonlySet<Permission>>(new Set(role?.permissions))
  const save = async () => {
    const body = { name, description, permissions: [...chosen] }
    const call =
      role === undefined
        ? control.POST('/organizations/{organizationId}/roles', { params: { path: { organizationId } }, body } as never)
        : control.PUT('/organizations/{organizationId}/roles/{roleId}', {
            params: { path: { organizationId, roleId: role.id } },
            body,
          } as never)
    await answerOf(call as Promise<{ data?: unknown; response: Response }>)
    changed()
    toast(role === undefined ? `The role ${name.trim()} is made` : `The role ${name.trim()} is changed`)
    onClose()
  }
  return (
    <FormDialog
      title={role === undefined ? 'Make a role' : `Change the role ${role.name}`}
      description={
        role === undefined
          ? 'A role is a set of permissions that members can have.'
          : 'Members with this role gain or lose the permissions at once. Their keys lose permissions, but gain none.'
      }
      isOpen
      isWide
      onClose={onClose}
      submit={role === undefined ? 'Make' : 'Change'}
      isSubmitDisabled={name.trim() === '' || description.trim() === '' || chosen.size === 0}
      onSubmit={save}
    >
      <div className="field-grid">
        <TextField label="Name" value={name} onChange={setName} maxLength={255} autoFocus />
        <TextField
          label="Description"
          hint="What people with this role do"
          value={description}
          onChange={setDescription}
          maxLength={255}
        />
      </div>
      <PermissionChoice chosen={chosen} onChange={setChosen} />
    </FormDialog>
  )
}
