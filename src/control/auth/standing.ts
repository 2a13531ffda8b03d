// A user's membership in an organization, with its permissions.
import { type Organization, type OrganizationRow, readOrganization } from '#src/control/people/organization.ts'
import type { User } from '#src/control/people/user.ts'
import type { Sql } from '../storage/database.ts'
import { allPermissions, isPermission, type Permission } from './permissions.ts'
import type { Caller } from './route.ts'
import { withDates } from './store.ts'

type StandingRow = { organization: OrganizationRow; member_role: 'owner' | 'member' | null; role_permissions: string[] }

export type Standing = { organization: Organization; memberRole: 'owner' | 'member'; rolePermissions: Permission[] }

/**
 * Finds the membership of a user in this organization. Default: the personal organization, or else the first organization that
 * the user joined.
 * An operator counts as an owner of every organization.
 */
export const findStanding = async (
  sql: Sql,
  user: User,
  organizationId: string | undefined,
): Promise<Standing | undefined> => {
  const isOperator = user.systemRole === 'admin'
  const [row] = await sql<StandingRow[]>`
    select to_jsonb(o) as organization, m.role as member_role,
           array(select distinct p from member_roles mr join roles r on r.id = mr.role_id, unnest(r.permissions) p
                 where mr.organization_id = m.organization_id and mr.user_id = m.user_id) as role_permissions
    from organizations o
    ${isOperator && organizationId !== undefined ? sql`left join` : sql`join`} members m
      on m.organization_id = o.id and m.user_id = ${user.id}
    where ${organizationId === undefined ? sql`true` : sql`o.id = ${organizationId}`}
    order by (o.personal and m.role = 'owner') desc, m.created_at, o.id
    limit 1`
  if (row === undefined) return undefined
  return {
    organization: readOrganization(withDates(row.organization)),
    memberRole: isOperator ? 'owner' : row.member_role!,
    rolePermissions: row.role_permissions.filter(isPermission),
  }
}

/** Returns the caller for a signed-in user, who has no key. The caller has all permissions of the membership. */
export const asPerson = (user: User, { organization, memberRole, rolePermissions }: Standing): Caller => ({
  user,
  organization,
  memberRole,
  permissions: new Set<Permission>(memberRole === 'owner' ? allPermissions : rolePermissions),
})
