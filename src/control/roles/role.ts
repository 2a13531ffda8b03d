// A role as control knows it, and as it is shown.
import { isPermission, type Permission } from '../auth/permissions.ts'

/** Dates are text where the row came inside another as JSON. */
export type RoleRow = {
  id: string
  organization_id: string | null
  name: string
  description: string
  permissions: string[]
  created_at: Date | string
  updated_at: Date | string
}

export type Role = {
  id: string
  /** null: a role of every organization, which none may change. */
  organizationId: string | null
  name: string
  description: string
  permissions: Permission[]
  createdAt: Date
  updatedAt: Date
}

export const readRole = (row: RoleRow): Role => ({
  id: row.id,
  organizationId: row.organization_id,
  name: row.name,
  description: row.description,
  permissions: row.permissions.filter(isPermission),
  createdAt: new Date(row.created_at),
  updatedAt: new Date(row.updated_at),
})

export const asRoleView = ({ id, organizationId, name, description, permissions, createdAt, updatedAt }: Role) => ({
  id,
  name,
  description,
  permissions,
  isGlobal: organizationId === null,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
})
