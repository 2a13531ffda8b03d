import { Link, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { OwnInvitations } from '../../invitations/own-invitations.tsx'
import { useMembers, useOrganization, useStanding } from '../../session/people.ts'
import { Button } from '../../ui/button.tsx'
import { Page, WhenLoaded } from '../../ui/page.tsx'
import { Invitations } from './invitations.tsx'
import { InviteDialog } from './invite-dialog.tsx'
import { MemberTable } from './member-table.tsx'
import { RoleDialog } from './role-dialog.tsx'
import { Roles } from './roles.tsx'
import { useInvitations } from './use-invitations.ts'
import './members.css'

const tabs = [
  { tab: undefined, label: 'Members' },
  { tab: 'invitations', label: 'Invitations' },
  { tab: 'roles', label: 'Roles' },
] as const

const MembersPage = () => {
  const { tab } = useSearch({ strict: false }) as { tab?: string }
  const organization = useOrganization()
  const isOwner = useStanding()?.isOwner ?? false
  const members = useMembers()
  const invitations = useInvitations()
  const [isInviting, setInviting] = useState(false)
  const [isMakingRole, setMakingRole] = useState(false)
  const mayInvite = isOwner && organization?.personal === false
  const counts: Record<string, number | undefined> = {
    Members: members.data?.length,
    Invitations: invitations.data?.length,
  }
  return (
    <Page
      title="Members"
      description="Who belongs to this organization, and what they may do."
      actions={
        tab === 'roles'
          ? (isOwner || undefined) && (
              <Button kind="primary" onClick={() => setMakingRole(true)}>
                Make a role
              </Button>
            )
          : (mayInvite || undefined) && (
              <Button kind="primary" onClick={() => setInviting(true)}>
                Invite somebody
              </Button>
            )
      }
    >
      <OwnInvitations />
      {organization?.personal && (
        <div className="notice">
          This is your personal organization: nobody can be invited to it. To work with others, make an organization in
          the menu of organizations.
        </div>
      )}
      <nav className="tabs" aria-label="Parts of this page">
        {tabs.map((each) => (
          <Link
            key={each.label}
            to="/members"
            search={(each.tab === undefined ? {} : { tab: each.tab }) as never}
            className="tab"
            activeOptions={{ exact: true, includeSearch: true }}
          >
            {each.label}
            {counts[each.label] !== undefined && <span className="muted"> {counts[each.label]}</span>}
          </Link>
        ))}
      </nav>
      {tab === 'roles' ? (
        <Roles isOwner={isOwner} />
      ) : tab === 'invitations' ? (
        <WhenLoaded query={invitations}>
          {(list) => (
            <Invitations
              invitations={list}
              isOwner={isOwner}
              onInvite={mayInvite ? () => setInviting(true) : undefined}
            />
          )}
        </WhenLoaded>
      ) : (
        <WhenLoaded query={members}>{(list) => <MemberTable members={list} isOwner={isOwner} />}</WhenLoaded>
      )}
      {isInviting && <InviteDialog onClose={() => setInviting(false)} />}
      {isMakingRole && <RoleDialog onClose={() => setMakingRole(false)} />}
    </Page>
  )
}

export default MembersPage
