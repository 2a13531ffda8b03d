// The permissions of a user in an organization at this moment, read without a cache.
import type { Sql } from '../storage/database.ts'
import { checkHoldsAll } from './grant.ts'
import { allPermissions, isPermission, type Permission } from './permissions.ts'
import type { Caller } from './route.ts'

/** Finds the permissions of a user in an organization. `undefined` if the user is no member. An owner has all permissions. */
export const findHeld = async (sql: Sql, organizationId: string, userId: string): Promise<Permission[] | undefined> => {
  const [member] = await sql<{ role: 'owner' | 'member'; permissions: string[] }[]>`
    select m.role, array(
      select distinct p from member_roles mr join roles r on r.id = mr.role_id, unnest(r.permissions) p
      where mr.organization_id = m.organization_id and mr.user_id = m.user_id) as permissions
    from members m where m.organization_id = ${organizationId} and m.user_id = ${userId}`
  if (member === undefined) return undefined
  return member.role === 'owner' ? allPermissions : member.permissions.filter(isPermission)
}

/** Throws 403 for an API key with fewer permissions than its user. Such a key may not change the user's account. */
export const checkActsForUser = async (sql: Sql, caller: Caller): Promise<void> => {
  if (caller.keyName === undefined) return
  checkHoldsAll(caller, (await findHeld(sql, caller.organization.id, caller.user.id)) ?? [])
}
