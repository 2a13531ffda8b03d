// Removes stored permissions from API keys after their user has lost them. The keys do not get them back later. The guard does
// not rely on this removal: on every call, it accepts only permissions that both key and user have.
import type { Sql } from '../storage/database.ts'

/**
 * Removes from each API key the permissions that its user no longer has. Call this in the transaction that changes
 * roles or members.
 * `userId`: only this user's keys. Default: the keys of every member.
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
 * Deletes all API keys of a user. Call this in the transaction that links a provider's account to an old user who could no
 * longer sign in. The person with this account may not be the person who made the keys.
 */
export const endKeysOf = async (sql: Sql, userId: string): Promise<void> => {
  await sql`delete from api_keys where user_id = ${userId}`
}
