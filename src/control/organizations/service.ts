// Lets other modules read organizations, write their quotas, and complete their deletion.

import { type Organization, type OrganizationRow, readOrganization } from '#src/control/people/organization.ts'
import type { Sql } from '../storage/database.ts'

export { type DeletedOrganization, endOrganization, keepsAnything, lookAtDeleted } from './deleted.ts'
export { writeOrganizationQuota } from './store.ts'

export const hasPreviewWarning = async (sql: Sql, organizationId: string): Promise<boolean> => {
  const [row] = await sql<{ enabled: boolean }[]>`
    select preview_warning_enabled as enabled from organizations where id = ${organizationId}`
  return row?.enabled ?? false
}

export const findOrganization = async (sql: Sql, id: string): Promise<Organization | undefined> => {
  const [row] = await sql<OrganizationRow[]>`select * from organizations where id = ${id}`
  return row && readOrganization(row)
}

const mostListed = 1000

/** Lists the organizations of a user, the personal organization first. */
export const listOrganizationsOf = async (sql: Sql, userId: string): Promise<Organization[]> => {
  const rows = await sql<OrganizationRow[]>`
    select o.* from organizations o join members m on m.organization_id = o.id
    where m.user_id = ${userId} order by o.personal desc, o.created_at, o.id limit ${mostListed}`
  return rows.map(readOrganization)
}
