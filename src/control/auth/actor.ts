import type { Organization } from '../people/organization.ts'
import type { User } from '../people/user.ts'
import type { Transaction } from '../storage/database.ts'

/**
 * How a call writes its audit row. Only the few routes that write the row together with their change use these fields
 * (audit/trail.ts).
 */
export type ActorFields = {
  /** Present for routes of `readFirst`. Resolves when the audit row is written; rejects if it cannot be written. */
  told?: Promise<unknown>
  /** Present for routes of `tellThemselves`. Writes the audit row in the transaction that makes the change. */
  tellIn?: (transaction: Transaction) => Promise<void>
}

/** The caller, and the organization of the call. */
export type Actor = ActorFields & { organization: Organization; user: User }
