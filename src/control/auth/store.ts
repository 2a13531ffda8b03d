// The SQL of authentication.
import { type Organization, type OrganizationRow, readOrganization } from '#src/control/people/organization.ts'
import { readUser, type User, type UserRow } from '#src/control/people/user.ts'
import type { Sql } from '../storage/database.ts'
import { isPermission, type Permission } from './permissions.ts'

export type KnownKey = {
  name: string
  hash: string
  /** Permissions that are stored for the key. The user may have lost some of these permissions since. */
  permissions: Permission[]
  expiresAt: Date | null
  lastUsedAt: Date | null
  user: User
  organization: Organization
  memberRole: 'owner' | 'member'
  /** Permissions of the roles assigned to the user. Empty for an owner, who needs no roles. */
  rolePermissions: Permission[]
}

type KeyRow = {
  name: string
  hash: string
  permissions: string[]
  expires_at: Date | null
  last_used_at: Date | null
  member_role: 'owner' | 'member'
  role_permissions: string[]
  user: UserRow
  organization: OrganizationRow
}

/** Converts the dates of a row to `Date` objects. The dates are texts if the row was read as JSON inside another row. */
export const withDates = <Row extends object>(row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      /_(?:at|until)$/.test(name) && typeof value === 'string' ? new Date(value) : value,
    ]),
  ) as Row

/** Reads a key in one query, with its user, organization, membership and roles. */
export const findKey = async (sql: Sql, hash: string): Promise<KnownKey | undefined> => {
  const [row] = await sql<KeyRow[]>`
    select k.name, k.hash, k.permissions, k.expires_at, k.last_used_at, m.role as member_role,
           to_jsonb(u) as "user", to_jsonb(o) as organization,
           array(select distinct p from member_roles mr join roles r on r.id = mr.role_id, unnest(r.permissions) p
                 where mr.organization_id = m.organization_id and mr.user_id = m.user_id) as role_permissions
    from api_keys k
    join members m using (organization_id, user_id)
    join users u on u.id = k.user_id
    join organizations o on o.id = k.organization_id
    where k.hash = ${hash}`
  if (!row) return undefined
  return {
    name: row.name,
    hash: row.hash,
    permissions: row.permissions.filter(isPermission),
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    user: readUser(withDates(row.user)),
    organization: readOrganization(withDates(row.organization)),
    memberRole: row.member_role,
    rolePermissions: row.role_permissions.filter(isPermission),
  }
}
