// A member as control stores them, and as the API shows them.
import { asRoleView, type Role, type RoleRow, readRole } from '../roles/role.ts'

export type MemberRow = {
  user_id: string
  organization_id: string
  name: string
  email: string
  role: 'owner' | 'member'
  assigned_roles: RoleRow[]
  created_at: Date
  updated_at: Date
}

export type Member = {
  userId: string
  organizationId: string
  name: string
  email: string
  role: 'owner' | 'member'
  assignedRoles: Role[]
  createdAt: Date
  updatedAt: Date
}

export const readMember = (row: MemberRow): Member => ({
  userId: row.user_id,
  organizationId: row.organization_id,
  name: row.name,
  email: row.email,
  role: row.role,
  assignedRoles: row.assigned_roles.map(readRole),
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

export const asMemberView = ({ assignedRoles, createdAt, updatedAt, ...plain }: Member) => ({
  ...plain,
  assignedRoles: assignedRoles.map(asRoleView),
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
})
