import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import { useTurnAway } from '../../session/leave-organization.ts'
import { type Member, useMe, useOrganization } from '../../session/people.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { CopyText } from '../../ui/copy.tsx'
import { RowButtons, Table, wide } from '../../ui/table.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { AccessDialog } from './access-dialog.tsx'
import { AccessText } from './access-fields.tsx'
import { usePeopleChanged } from './use-invitations.ts'

/** The table has a search field if there are at least this many members. */
const findable = 8

type Doing = { what: 'change' | 'remove' | 'leave'; member: Member }

export const MemberTable = ({ members, isOwner }: { members: readonly Member[]; isOwner: boolean }) => {
  const organizationId = useOrganizationId()
  const organization = useOrganization()
  const me = useMe().data
  const changed = usePeopleChanged()
  const turnAway = useTurnAway()
  const [text, setText] = useState('')
  const [doing, setDoing] = useState<Doing>()
  const stop = () => setDoing(undefined)
  const wanted = text.trim().toLowerCase()
  const fitting = members.filter(({ name, email }) => `${name}\n${email}`.toLowerCase().includes(wanted))

  const remove = async ({ userId, email }: Member) => {
    const path = { organizationId, userId }
    await answerOf(control.DELETE('/organizations/{organizationId}/users/{userId}', { params: { path } } as never))
    changed()
    toast(`${email} is no longer a member`)
  }
  const leave = async () => {
    await answerOf(
      control.POST('/organizations/{organizationId}/leave', { params: { path: { organizationId } } } as never),
    )
    turnAway(organizationId)
  }
  const actionsOf = (member: Member) => {
    if (member.userId === me?.id)
      return (
        organization?.personal === false && (
          <Button compact kind="danger" onClick={() => setDoing({ what: 'leave', member })}>
            Leave…
          </Button>
        )
      )
    return (
      isOwner && (
        <>
          <Button
            compact
            aria-label={`Change access of ${member.email}`}
            onClick={() => setDoing({ what: 'change', member })}
          >
            Change access…
          </Button>
          <Button
            compact
            kind="danger"
            aria-label={`Remove ${member.email}`}
            onClick={() => setDoing({ what: 'remove', member })}
          >
            Remove
          </Button>
        </>
      )
    )
  }
  return (
    <>
      {members.length > findable && (
        <input
          className="input"
          type="search"
          style={{ maxWidth: 320 }}
          aria-label="Find a member"
          placeholder="Name or e-mail address"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      )}
      <div className="card">
        <Table label="Members" columns={['Member', wide('May do'), wide('Id'), wide('Since')]} rows={fitting}>
          {(member) => (
            <tr key={member.userId}>
              <td className="wrap-anywhere">
                <bdi>
                  <strong>{member.name || member.email}</strong>
                </bdi>
                {member.userId === me?.id && <span className="muted"> (you)</span>}
                {member.name !== member.email && <div className="muted small">{member.email}</div>}
                <div className="narrow-only">
                  <AccessText role={member.role} assignedRoles={member.assignedRoles} />
                </div>
              </td>
              <td className="wide-only">
                <AccessText role={member.role} assignedRoles={member.assignedRoles} />
              </td>
              <td className="wide-only">
                <CopyText text={member.userId} shown={member.userId.slice(0, 8)} />
              </td>
              <td className="wide-only">
                <TimeAgo time={member.createdAt} />
              </td>
              <RowButtons>{actionsOf(member)}</RowButtons>
            </tr>
          )}
        </Table>
        {fitting.length === 0 && <div className="waiting">No member fits.</div>}
      </div>
      {doing?.what === 'change' && <AccessDialog member={doing.member} onClose={stop} />}
      <Confirm
        title="Remove this member?"
        verb="Remove"
        isOpen={doing?.what === 'remove'}
        onClose={stop}
        onConfirm={() => remove(doing!.member)}
      >
        <p className="wrap-anywhere">
          <strong>{doing?.member.email}</strong> can no longer use this organization, and all of their keys here are
          deleted at once. Everything that they made, such as sandboxes, stays.
        </p>
      </Confirm>
      <Confirm
        title="Leave this organization?"
        verb="Leave"
        isOpen={doing?.what === 'leave'}
        onClose={stop}
        onConfirm={leave}
      >
        <p>
          You can no longer use <strong className="wrap-anywhere">{organization?.name}</strong>, and your keys here are
          deleted at once. To come back, you need an invitation.
        </p>
      </Confirm>
    </>
  )
}
