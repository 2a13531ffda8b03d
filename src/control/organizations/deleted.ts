// The SQL of organizations that were deleted and are not forgotten yet.
import { deleteRegionsOf } from '../regions/service.ts'
import type { Sql, Transaction } from '../storage/database.ts'

export type DeletedOrganization = { id: string; deletedBy: string; deletedAt: Date }

/** No transaction that began before the deletion lasts longer; until then something may still be added. */
const keptMinutes = 5
const atOneTime = 20

/** The longest ago looked at first. */
export const lookAtDeleted = async (sql: Sql, now: Date): Promise<DeletedOrganization[]> =>
  await sql<DeletedOrganization[]>`
    update deleted_organizations set looked_at = ${now}
    where id in (
      select id from deleted_organizations
      order by looked_at nulls first, id limit ${atOneTime} for update skip locked)
    returning id, deleted_by as "deletedBy", deleted_at as "deletedAt"`

/** Sandboxes of which a runner has not said that they are gone, or runners in a region of its own. */
export const keepsAnything = async (sql: Sql, id: string): Promise<boolean> => {
  const [found] = await sql`
    select 1 from sandboxes where organization_id = ${id} and gone_at is null
    union all
    select 1 from runners join regions on regions.id = runners.region_id where organization_id = ${id}
    limit 1`
  return found !== undefined
}

/** Nothing of it is left but its regions, which go now, and after a while the memory of it. */
export const endOrganization = async (
  transaction: Transaction,
  { id, deletedAt }: DeletedOrganization,
  now: Date,
): Promise<void> => {
  await deleteRegionsOf(transaction, id)
  if (now.getTime() - deletedAt.getTime() < keptMinutes * 60_000) return
  await transaction`delete from deleted_organizations where id = ${id}`
}
