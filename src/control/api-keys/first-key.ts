// The API key of the first administrator, which the operator passes to the server at its start.
import type { Permission } from '../auth/permissions.ts'
import type { Transaction } from '../storage/database.ts'

type FirstKey = { hash: string; maskedValue: string; permissions: Permission[] }

export const insertFirstKey = async (
  transaction: Transaction,
  { organizationId, userId }: { organizationId: string; userId: string },
  { hash, maskedValue, permissions }: FirstKey,
): Promise<void> => {
  await transaction`
    insert into api_keys (organization_id, user_id, name, hash, masked_value, permissions)
    values (${organizationId}, ${userId}, 'first', ${hash}, ${maskedValue}, ${permissions})`
}

/**
 * Stores the operator's API key as the key `first` of an administrator, in place of a former key of that name.
 * Returns false if there is no administrator, or if a key with this hash exists already.
 */
export const putFirstKey = async (
  transaction: Transaction,
  { hash, maskedValue, permissions }: FirstKey,
): Promise<boolean> => {
  const { count } = await transaction`
    insert into api_keys (organization_id, user_id, name, hash, masked_value, permissions)
    select organizations.id, users.id, 'first', ${hash}, ${maskedValue}, ${permissions}
    from users join organizations on organizations.created_by = users.id and personal
      join members on members.organization_id = organizations.id and members.user_id = users.id
    where system_role = 'admin' and not exists (select from api_keys where hash = ${hash})
    order by email = 'admin@localhost' desc, users.created_at limit 1
    on conflict (organization_id, user_id, name) do update set hash = excluded.hash,
      masked_value = excluded.masked_value, permissions = excluded.permissions, expires_at = null, last_used_at = null`
  return count === 1
}
