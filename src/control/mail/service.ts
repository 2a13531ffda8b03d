// What other rooms say: a mail is queued in the transaction that makes it true, or taken back in another.
import { Problem } from '#src/problems.ts'
import type { Transaction } from '../storage/database.ts'
import { countMail, deleteMailAbout, insertMail, type NewMail } from './store.ts'

/** More wait only when the mail server has been away for long. */
const mostWaiting = 10_000
/** A user may have a ninth as many waiting as there are free places. So one has 1,000, and many never take all places. */
const share = 9

/** What would end a header, whatever the place that it came from should have refused. */
const breaksHeader = /[\p{Cc}\p{Zl}\p{Zp}]/u

/** It is sent after the transaction has been committed, and not at all if it is not. Nudge the outbox then. */
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

/** Takes back unsent mail about something that is gone. */
export const takeBackMail = async (transaction: Transaction, about: string): Promise<void> => {
  await deleteMailAbout(transaction, about)
}
