// The personal organization of each user.
import { insertOwner } from '../members/service.ts'
import type { Transaction } from '../storage/database.ts'

/** Makes the organization `Personal` with this user as its owner, in the shared default region. */
export const makePersonalOrganization = async (transaction: Transaction, userId: string): Promise<string> => {
  const [organization] = await transaction<{ id: string }[]>`
    insert into organizations (name, created_by, personal, default_region_id)
    values ('Personal', ${userId}, true,
            (select id from regions where region_type = 'shared' order by created_at, id limit 1))
    returning id`
  const organizationId = organization!.id
  await insertOwner(transaction, organizationId, userId)
  return organizationId
}
