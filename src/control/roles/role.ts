// A role as control stores it, and as the API shows it.
import { isPermission, type Permission } from '../auth/permissions.ts'

/** A row of the table `roles`. If PostgreSQL has returned the row as JSON inside another row, its dates are texts. */
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
  /**
   * The organization that owns the role. null: a global role. Every organization has the global roles, and nobody can
   * change them.
   */
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
