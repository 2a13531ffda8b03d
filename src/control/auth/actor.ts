import type { Organization } from '../people/organization.ts'
import type { User } from '../people/user.ts'
import type { Transaction } from '../storage/database.ts'

/**
 * How a call gets its audit row. Only the few routes that take part in writing it use these fields (audit/trail.ts).
 */
export type ActorFields = {
  /** For routes of `readFirst`: resolves when the audit row is written; rejects if it cannot be. */
  told?: Promise<unknown>
  /** For routes of `tellThemselves`: writes the audit row in the transaction that makes the change. */
  tellIn?: (transaction: Transaction) => Promise<void>
}

/** The caller, and the organization of the call. */
export type Actor = ActorFields & { organization: Organization; user: User }
