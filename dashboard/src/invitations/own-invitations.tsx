import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { answerOf, control } from '../api/client.ts'
import { session } from '../session/session.ts'
import { Button } from '../ui/button.tsx'
import { TimeAgo } from '../ui/time.tsx'
import { toast, toastError } from '../ui/toast.tsx'
import { type Invitation, useOwnInvitations } from './use-own-invitations.ts'

const rightsOf = ({ role, assignedRoles }: Invitation): string =>
  role === 'owner' ? 'an owner' : `a member (${assignedRoles.map(({ name }) => name).join(', ') || 'without roles'})`

/** Lists the invitations to this user, with buttons that accept or decline them. Draws nothing if there are no invitations. */
export const OwnInvitations = () => {
  const queries = useQueryClient()
  const { data = [] } = useOwnInvitations()
  const [answering, setAnswering] = useState<string>()
  const [joined, setJoined] = useState<readonly Invitation[]>([])
  const answer = async (invitation: Invitation, verb: 'accept' | 'decline') => {
    setAnswering(invitation.id)
    const path = { params: { path: { invitationId: invitation.id } } } as never
    try {
      if (verb === 'accept') {
        await answerOf(control.POST('/organizations/invitations/{invitationId}/accept', path))
        await queries.invalidateQueries({ queryKey: ['organizations'] })
        setJoined((before) => [...before, invitation])
      } else {
        await answerOf(control.POST('/organizations/invitations/{invitationId}/decline', path))
        toast('The invitation is declined')
      }
    } catch (error) {
      toastError(`The invitation could not be ${verb === 'accept' ? 'accepted' : 'declined'}`, error)
    } finally {
      setAnswering(undefined)
      void queries.invalidateQueries({ queryKey: ['own-invitations'] })
    }
  }
  return (
    <>
      {joined.map(({ id, organizationId, organizationName }) => (
        <div key={id} className="notice ok row spread" role="status">
          <span>
            You are a member of <bdi>{organizationName}</bdi> now.
          </span>
          <Button
            compact
            onClick={() => {
              session.organizationId = organizationId
            }}
          >
            Open the organization
          </Button>
        </div>
      ))}
      {data.map((invitation) => (
        <section key={invitation.id} className="notice row spread" aria-label="Invitation to you">
          <div>
            <div>
              <bdi>{invitation.invitedBy}</bdi> invites you to{' '}
              <strong>
                <bdi>{invitation.organizationName}</bdi>
              </strong>
              , as {rightsOf(invitation)}.
            </div>
            <div className="muted small">
              It ends <TimeAgo time={invitation.expiresAt} />
            </div>
          </div>
          <div className="row">
            <Button
              compact
              kind="primary"
              disabled={answering !== undefined}
              onClick={() => void answer(invitation, 'accept')}
            >
              Accept
            </Button>
            <Button compact disabled={answering !== undefined} onClick={() => void answer(invitation, 'decline')}>
              Decline
            </Button>
          </div>
        </section>
      ))}
    </>
  )
}
