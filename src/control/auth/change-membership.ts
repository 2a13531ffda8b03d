// Changes the members, roles and keys of an organization one at a time. Each change sees the result of the previous one.
// Otherwise two owners could remove each other, or a new key could get permissions that its user loses at that moment.
import { Problem } from '#src/problems.ts'
import type { Parts } from '../parts.ts'
import type { Sql, Transaction } from '../storage/database.ts'
import { announceCredentialChange, type Callers } from './callers.ts'
import type { Caller } from './route.ts'

export type ChangeParts = Pick<Parts, 'database' | 'clock'> & { callers: Callers }

/** Changes of members, roles and keys wait for this lock until the transaction ends. Creates of sandboxes do not wait. */
export const lockMembership = async (sql: Transaction, organizationId: string): Promise<void> => {
  const [found] = await sql`select 1 from organizations where id = ${organizationId} for no key update`
  if (!found) throw new Problem('not_found')
}

/** Throws if the caller is no longer an owner. The role may have been removed while the call waited for the lock. */
const checkStillOwner = async (sql: Sql, organizationId: string, { user }: Caller): Promise<void> => {
  if (user.systemRole === 'admin') return
  const [owner] = await sql`
    select 1 from members where organization_id = ${organizationId} and user_id = ${user.id} and role = 'owner'`
  if (!owner) throw new Problem('forbidden', 'Only an owner of the organization may do that.')
}

/**
 * Runs `work` in a transaction with the lock of `lockMembership`. After the commit, every process clears its cache of
 * credentials.
 */
export const changeMembership = async <T>(
  { database, callers }: Pick<ChangeParts, 'database' | 'callers'>,
  organizationId: string,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> => {
  try {
    return await database.transaction(async (transaction) => {
      await lockMembership(transaction, organizationId)
      await announceCredentialChange(transaction)
      return await work(transaction)
    })
  } finally {
    callers.forget()
  }
}

/** Makes a change that only an owner may make. Throws if the caller is no longer an owner. */
export const changeAsOwner = async <T>(
  parts: Pick<ChangeParts, 'database' | 'callers'>,
  { caller, organizationId }: { caller: Caller; organizationId: string },
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> =>
  await changeMembership(parts, organizationId, async (transaction) => {
    await checkStillOwner(transaction, organizationId, caller)
    return await work(transaction)
  })
