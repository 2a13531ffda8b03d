// The SQL for deleted organizations. An organization's id is kept until its last sandboxes and other rows are removed.
import { deleteRegionsOf } from '../regions/service.ts'
import type { Sql, Transaction } from '../storage/database.ts'

export type DeletedOrganization = { id: string; deletedBy: string; deletedAt: Date }

/**
 * Minimum minutes for which the id of a deleted organization is kept. Transactions that began before the deletion may still add
 * rows, but end within this time.
 */
const keptMinutes = 5
const atOneTime = 20

/** Returns the deleted organizations that were checked longest ago, to check them for left-over sandboxes, volumes and runners. */
export const lookAtDeleted = async (sql: Sql, now: Date): Promise<DeletedOrganization[]> =>
  await sql<DeletedOrganization[]>`
    update deleted_organizations set looked_at = ${now}
    where id in (
      select id from deleted_organizations
      order by looked_at nulls first, id limit ${atOneTime} for update skip locked)
    returning id, deleted_by as "deletedBy", deleted_at as "deletedAt"`

/**
 * Returns whether anything of a deleted organization is left: a sandbox or a volume that no runner has confirmed as
 * gone, or a runner in one of its own regions.
 */
export const keepsAnything = async (sql: Sql, id: string): Promise<boolean> => {
  const [found] = await sql`
    select 1 from sandboxes where organization_id = ${id} and gone_at is null
    union all
    select 1 from volumes where organization_id = ${id} and state <> 'deleted'
    union all
    select 1 from runners join regions on regions.id = runners.region_id where organization_id = ${id}
    limit 1`
  return found !== undefined
}

/**
 * Ends the clean-up of an organization that has only regions left. The regions are deleted now, the id when `keptMinutes` have
 * passed.
 */
export const endOrganization = async (
  transaction: Transaction,
  { id, deletedAt }: DeletedOrganization,
  now: Date,
): Promise<void> => {
  await deleteRegionsOf(transaction, id)
  if (now.getTime() - deletedAt.getTime() < keptMinutes * 60_000) return
  await transaction`delete from deleted_organizations where id = ${id}`
}
