// Functions about mail, for other modules. A mail is queued in the transaction that makes the change which the mail tells
// of. A later transaction may withdraw the mail.
import { Problem } from '#src/problems.ts'
import type { Transaction } from '../storage/database.ts'
import { countMail, deleteMailAbout, insertMail, type NewMail } from './store.ts'

/** Maximum number of waiting mails. So many wait only if the mail server has been unreachable for long. */
const mostWaiting = 10_000
/**
 * The share of the free places in the queue that one user's mails may take: a ninth. For a single user these are 1,000
 * mails, and many users together never take all places.
 */
const share = 9

/** Characters that would end a header. Callers should refuse them; this check is a second protection. */
const breaksHeader = /[\p{Cc}\p{Zl}\p{Zp}]/u

/**
 * Queues a mail, which is sent only if the transaction commits. Call the outbox's `nudge` after the commit, so that the
 * mail is sent soon.
 */
export const queueMail = async (transaction: Transaction, mail: NewMail, now: Date): Promise<void> => {
  if (breaksHeader.test(mail.recipient) || breaksHeader.test(mail.subject)) {
    throw new Problem('bad_request', 'This cannot be said in the header of a mail.')
  }
  const { all, own } = await countMail(transaction, mail.userId)
  if (own * share >= mostWaiting - all) {
    throw new Problem('unavailable', 'Too many mails wait to be sent; try again later.')
  }
  await insertMail(transaction, mail, now)
}

/** Deletes unsent mail about a thing that no longer exists. `about` names the thing. */
export const takeBackMail = async (transaction: Transaction, about: string): Promise<void> => {
  await deleteMailAbout(transaction, about)
}
