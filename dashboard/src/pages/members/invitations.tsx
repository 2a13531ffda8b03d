import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Empty } from '../../ui/page.tsx'
import { RowButtons, Table, wide } from '../../ui/table.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { AccessText } from './access-fields.tsx'
import { InviteDialog } from './invite-dialog.tsx'
import { type Invitation, usePeopleChanged } from './use-invitations.ts'

type Props = {
  invitations: readonly Invitation[]
  isOwner: boolean
  /** Opens the dialog for a new invitation. Undefined if the user may not invite anybody. */
  onInvite: (() => void) | undefined
}

/** Lists the invitations that were not answered yet. */
export const Invitations = ({ invitations, isOwner, onInvite }: Props) => {
  const organizationId = useOrganizationId()
  const changed = usePeopleChanged()
  const [changing, setChanging] = useState<Invitation>()
  const [cancelling, setCancelling] = useState<Invitation>()
  const cancel = async ({ id, email }: Invitation) => {
    await answerOf(
      control.POST('/organizations/{organizationId}/invitations/{invitationId}/cancel', {
        params: { path: { organizationId, invitationId: id } },
      } as never),
    )
    changed()
    toast(`The invitation of ${email} is taken back`)
  }
  if (invitations.length === 0)
    return (
      <div className="card">
        <Empty
          title="No invitation is waiting"
          action={onInvite !== undefined && <Button onClick={onInvite}>Invite somebody</Button>}
        >
          {isOwner ? 'Invite people by their e-mail addresses.' : 'Owners invite people by their e-mail addresses.'}
        </Empty>
      </div>
    )
  return (
    <div className="card">
      <Table label="Invitations" columns={['Invited', wide('Will be'), wide('Invited by'), 'Ends']} rows={invitations}>
        {(invitation) => (
          <tr key={invitation.id}>
            <td className="wrap-anywhere">
              <strong>{invitation.email}</strong>
              <div className="narrow-only">
                <AccessText role={invitation.role} assignedRoles={invitation.assignedRoles} />
              </div>
            </td>
            <td className="wide-only">
              <AccessText role={invitation.role} assignedRoles={invitation.assignedRoles} />
            </td>
            <td className="wide-only wrap-anywhere">
              <bdi>{invitation.invitedBy}</bdi> <TimeAgo time={invitation.createdAt} />
            </td>
            <td>
              <TimeAgo time={invitation.expiresAt} />
            </td>
            <RowButtons>
              {isOwner && (
                <>
                  <Button
                    compact
                    aria-label={`Change the invitation of ${invitation.email}`}
                    onClick={() => setChanging(invitation)}
                  >
                    Change…
                  </Button>
                  <Button
                    compact
                    kind="danger"
                    aria-label={`Take back the invitation of ${invitation.email}`}
                    onClick={() => setCancelling(invitation)}
                  >
                    Take back
                  </Button>
                </>
              )}
            </RowButtons>
          </tr>
        )}
      </Table>
      {changing !== undefined && <InviteDialog invitation={changing} onClose={() => setChanging(undefined)} />}
      <Confirm
        title="Take this invitation back?"
        verb="Take back"
        isOpen={cancelling !== undefined}
        onClose={() => setCancelling(undefined)}
        onConfirm={() => cancel(cancelling!)}
      >
        <p className="wrap-anywhere">
          <strong>{cancelling?.email}</strong> can no longer accept the invitation. If the e-mail has not been sent yet,
          it will not be sent.
        </p>
      </Confirm>
    </div>
  )
}
