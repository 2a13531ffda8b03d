// Removes permissions from API keys after their user has lost them. If the user gets a permission back later, the keys
// stay without it. The guard needs no such change: on every call, it accepts only permissions that both the key and its
// user have. The functions here change the stored permissions of keys.
import type { Sql } from '../storage/database.ts'

/**
 * Removes from each API key the permissions that its user no longer has. Call this in the transaction that changes
 * roles or members. If `userId` is undefined, the keys of every member are changed.
 */
export const cutBackKeys = async (sql: Sql, organizationId: string, userId?: string): Promise<void> => {
  await sql`
    update api_keys k
    set permissions = array(
      select given.permission from unnest(k.permissions) with ordinality as given (permission, place)
      where given.permission = any (held.permissions) order by given.place)
    from (
      select m.user_id, array(
        select unnest(r.permissions) from member_roles mr join roles r on r.id = mr.role_id
        where mr.organization_id = m.organization_id and mr.user_id = m.user_id) as permissions
      from members m
      where m.organization_id = ${organizationId} and m.role = 'member'
        ${userId === undefined ? sql`` : sql`and m.user_id = ${userId}`}
    ) held
    where k.organization_id = ${organizationId} and k.user_id = held.user_id and not k.permissions <@ held.permissions`
}

/**
 * Deletes all API keys of a user, in every organization, because somebody else may have made them. Call this in the
 * transaction that links an account of an identity provider to a user who could no longer sign in.
 */
export const endKeysOf = async (sql: Sql, userId: string): Promise<void> => {
  await sql`delete from api_keys where user_id = ${userId}`
}
