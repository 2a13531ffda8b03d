import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import type { Member } from '../../session/people.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { FormDialog } from '../../ui/dialog.tsx'
import { toast } from '../../ui/toast.tsx'
import { type Access, AccessFields, accessBody } from './access-fields.tsx'
import { usePeopleChanged } from './use-invitations.ts'

/** Changes the roles of a member, and so what the member may do. */
export const AccessDialog = ({ member, onClose }: { member: Member; onClose: () => void }) => {
  const organizationId = useOrganizationId()
  const changed = usePeopleChanged()
  const [access, setAccess] = useState<Access>({
    role: member.role,
    assignedRoleIds: member.assignedRoles.map(({ id }) => id),
  })
  const change = async () => {
    const path = { organizationId, userId: member.userId }
    await answerOf(
      control.POST('/organizations/{organizationId}/users/{userId}/access', {
        params: { path },
        body: accessBody(access),
      } as never),
    )
    changed()
    toast(`The access of ${member.email} is changed`)
    onClose()
  }
  return (
    <FormDialog
      title={`Access of ${member.email}`}
      description="The change applies immediately. Permissions that the member loses are also permanently removed from the member’s keys."
      isOpen
      onClose={onClose}
      submit="Change"
      onSubmit={change}
    >
      <AccessFields value={access} onChange={setAccess} />
    </FormDialog>
  )
}
