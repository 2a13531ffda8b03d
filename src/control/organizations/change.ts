// Runs changes of an organization one at a time. After a change, every control process clears its cache of callers, because the
// cache contains their organizations.

import type { Organization, OrganizationRow } from '#src/control/people/organization.ts'
import { Problem } from '#src/problems.ts'
import { announceCredentialChange, type Callers } from '../auth/callers.ts'
import type { Parts } from '../parts.ts'
import { lockOrganization, writeOrganization } from './store.ts'

export type OrganizationParts = Parts & { callers: Callers }

/**
 * Changes an organization. Calls `change` while the organization is locked. `change` returns the columns to write, or
 * undefined to change nothing.
 */
export const changeOrganization = async (
  { database, clock, callers }: Pick<OrganizationParts, 'database' | 'clock' | 'callers'>,
  organizationId: string,
  change: (organization: Organization) => Partial<OrganizationRow> | undefined,
): Promise<void> => {
  await database.transaction(async (transaction) => {
    const organization = await lockOrganization(transaction, organizationId)
    if (organization === undefined) throw new Problem('not_found', 'There is no such organization.')
    const columns = change(organization)
    if (columns === undefined) return
    await writeOrganization(transaction, organizationId, columns, clock.now())
    await announceCredentialChange(transaction)
  })
  callers.forget()
}
