import type { Organization } from '../people/organization.ts'
import type { User } from '../people/user.ts'
import type { Transaction } from '../storage/database.ts'

/**
 * Fields for a handler that runs before the audit row of its call is written (audit/trail.ts). All other handlers get neither
 * field.
 */
export type ActorFields = {
  /**
   * Resolves when the audit row of the call is written, and rejects if it cannot be written.
   * The handler must await this promise before it changes anything.
   */
  told?: Promise<unknown>
  /** Present if the handler must write the audit row itself, in the transaction that makes the change. */
  tellIn?: (transaction: Transaction) => Promise<void>
}

export type Actor = ActorFields & { organization: Organization; user: User }
