// An invitation as control stores it, and as the API shows it.
import { asRoleView, type Role, type RoleRow, readRole } from '../roles/role.ts'

export type InvitationStatus = 'pending' | 'accepted' | 'declined' | 'cancelled'

export type InvitationRow = {
  id: string
  email: string
  invited_by: string
  organization_id: string
  organization_name: string
  expires_at: Date
  status: InvitationStatus
  role: 'owner' | 'member'
  assigned_roles: RoleRow[]
  created_at: Date
  updated_at: Date
}

export type Invitation = {
  id: string
  /** The invited address in lower case. */
  email: string
  invitedBy: string
  organizationId: string
  organizationName: string
  expiresAt: Date
  status: InvitationStatus
  role: 'owner' | 'member'
  assignedRoles: Role[]
  createdAt: Date
  updatedAt: Date
}

export const readInvitation = (row: InvitationRow): Invitation => ({
  id: row.id,
  email: row.email,
  invitedBy: row.invited_by,
  organizationId: row.organization_id,
  organizationName: row.organization_name,
  expiresAt: row.expires_at,
  status: row.status,
  role: row.role,
  assignedRoles: row.assigned_roles.map(readRole),
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

export const asInvitationView = ({ assignedRoles, expiresAt, createdAt, updatedAt, ...plain }: Invitation) => ({
  ...plain,
  assignedRoles: assignedRoles.map(asRoleView),
  expiresAt: expiresAt.toISOString(),
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
})
