import type { Organization } from '../people/organization.ts'
import type { User } from '../people/user.ts'
import type { Transaction } from '../storage/database.ts'

/**
 * How the handler of a call takes part in writing the audit row of the call (audit/trail.ts). Most handlers do not: the
 * row is written before they run.
 */
export type ActorFields = {
  /** Present for routes of `readFirst`. Resolves when the audit row is written; rejects if it cannot be written. */
  told?: Promise<unknown>
  /** Present for routes of `tellThemselves`. Writes the audit row in the transaction that makes the change. */
  tellIn?: (transaction: Transaction) => Promise<void>
}

export type Actor = ActorFields & { organization: Organization; user: User }
