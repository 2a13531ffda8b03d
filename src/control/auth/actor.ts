import type { Organization } from '../people/organization.ts'
import type { User } from '../people/user.ts'
import type { Transaction } from '../storage/database.ts'

/** How a call comes to stand in the audit log, for the few routes that see to it themselves (audit/trail.ts). */
export type Told = {
  /** To those of `readFirst`: settles when it stands in the log that this is asked for; throws where it cannot. */
  told?: Promise<unknown>
  /** To those of `tellThemselves`: writes that this is asked for, in the transaction that does it. */
  tellIn?: (transaction: Transaction) => Promise<void>
}

/** Who asks, and in which organization. */
export type Actor = Told & { organization: Organization; user: User }
