import type { Organization } from '../people/organization.ts'
import type { User } from '../people/user.ts'
import type { Transaction } from '../storage/database.ts'

/**
 * How the handler of a call takes part in writing the audit row of the call (audit/trail.ts). Most handlers take no
 * part: the row is written before they run.
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
