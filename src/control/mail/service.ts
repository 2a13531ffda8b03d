// Queues and withdraws mails. A mail about a change is queued in the transaction that makes the change.
import { Problem } from '#src/problems.ts'
import type { Transaction } from '../storage/database.ts'
import { countMail, deleteMailAbout, insertMail, type NewMail } from './store.ts'

/** Maximum number of mails in the outbox. This number is reached only if the mail server has been unreachable for long. */
const mostWaiting = 10_000
/**
 * A user may queue another mail only while the user has few waiting mails: fewer than a ninth of the outbox's free places. So
 * one user can fill at most a tenth of the outbox. With 1,000 waiting mails, 9,000 places are free, and 1,000 is a ninth of it.
 */
const share = 9

/** Characters that would end a mail header. Callers should refuse them earlier; this check is a second protection. */
const breaksHeader = /[\p{Cc}\p{Zl}\p{Zp}]/u

/** Queues a mail, which is sent only if the transaction commits. After the commit, call the outbox's `nudge` to send it soon. */
export const queueMail = async (transaction: Transaction, mail: NewMail, now: Date): Promise<void> => {
  if (breaksHeader.test(mail.recipient) || breaksHeader.test(mail.subject)) {
    throw new Problem(
      'bad_request',
      'The address or the subject of the mail has a character that is not allowed in a mail header.',
    )
  }
  const { all, own } = await countMail(transaction, mail.userId)
  if (own * share >= mostWaiting - all) {
    throw new Problem('unavailable', 'Too many mails wait to be sent; try again later.')
  }
  await insertMail(transaction, mail, now)
}

/** Deletes the unsent mails about something that was deleted, such as an invitation. `about` identifies that thing. */
export const takeBackMail = async (transaction: Transaction, about: string): Promise<void> => {
  await deleteMailAbout(transaction, about)
}
