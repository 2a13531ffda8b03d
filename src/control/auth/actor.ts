import type { Organization } from '../people/organization.ts'
import type { User } from '../people/user.ts'
import type { Transaction } from '../storage/database.ts'

/**
 * What a handler gets if it runs before the audit row of its call is written (audit/trail.ts). For most calls, the row
 * is written before the handler runs, and both fields are absent.
 */
export type ActorFields = {
  /**
   * Resolves when the audit row of the call is written, and rejects if it cannot be written. Present only if the
   * handler may run while the row is being written. The handler must await this promise before it changes anything.
   */
  told?: Promise<unknown>
  /** Present if the handler must write the audit row itself, in the transaction that makes the change. */
  tellIn?: (transaction: Transaction) => Promise<void>
}

export type Actor = ActorFields & { organization: Organization; user: User }
