import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import { developerRoleId } from '../../roles/use-roles.ts'
import { session } from '../../session/session.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { FormDialog } from '../../ui/dialog.tsx'
import { expiresAt } from '../../ui/expiry.ts'
import { ExpiryField } from '../../ui/expiry-field.tsx'
import { TextField } from '../../ui/field.tsx'
import { timeText } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { type Access, AccessFields, accessBody } from './access-fields.tsx'
import { type Invitation, usePeopleChanged } from './use-invitations.ts'

type Props = {
  /** The pending invitation to change. If absent, the dialog makes a new one. */
  invitation?: Invitation | undefined
  onClose: () => void
}

/** Invites somebody, or changes the roles that a pending invitation gives. */
export const InviteDialog = ({ invitation, onClose }: Props) => {
  const organizationId = useOrganizationId()
  const changed = usePeopleChanged()
  const [email, setEmail] = useState(invitation?.email ?? '')
  const [expiry, setExpiry] = useState({ days: invitation === undefined ? '7' : '', date: '' })
  const [access, setAccess] = useState<Access>(
    invitation === undefined
      ? { role: 'member', assignedRoleIds: [developerRoleId] }
      : { role: invitation.role, assignedRoleIds: invitation.assignedRoles.map(({ id }) => id) },
  )
  const send = async () => {
    const end = expiresAt(expiry, session.now())
    const body = { ...accessBody(access), ...(end !== null && { expiresAt: end }) }
    if (invitation === undefined) {
      await answerOf(
        control.POST('/organizations/{organizationId}/invitations', {
          params: { path: { organizationId } },
          body: { email: email.trim(), ...body },
        } as never),
      )
      toast(`${email.trim()} is invited`)
    } else {
      await answerOf(
        control.PUT('/organizations/{organizationId}/invitations/{invitationId}', {
          params: { path: { organizationId, invitationId: invitation.id } },
          body,
        } as never),
      )
      toast(`The invitation of ${email} is changed`)
    }
    changed()
    onClose()
  }
  return (
    <FormDialog
      title={invitation === undefined ? 'Invite somebody' : `Invitation of ${email}`}
      description={
        invitation === undefined
          ? 'They get an e-mail, if this server sends mail. They also see the invitation when they sign in with this address.'
          : 'Whoever accepts the invitation gets the access that it gives at that moment. No second e-mail is sent.'
      }
      isOpen
      onClose={onClose}
      submit={invitation === undefined ? 'Invite' : 'Change'}
      isSubmitDisabled={email.trim() === ''}
      onSubmit={send}
    >
      {invitation === undefined && (
        <TextField label="E-mail address" type="email" value={email} onChange={setEmail} maxLength={320} autoFocus />
      )}
      <AccessFields value={access} onChange={setAccess} />
      <ExpiryField
        label="Can be accepted until"
        value={expiry}
        onChange={setExpiry}
        neverLabel={invitation === undefined ? undefined : `As now: ${timeText(invitation.expiresAt)}`}
      />
    </FormDialog>
  )
}
