// The SQL of the outbox of mails.
import type { Sql } from '../storage/database.ts'

export type MailRow = {
  id: string
  about: string
  recipient: string
  subject: string
  body: string
  attempts: number
}

export type NewMail = Pick<MailRow, 'about' | 'recipient' | 'subject' | 'body'> & {
  /** The user whose action caused the mail. */
  userId: string
}

export const insertMail = async (
  sql: Sql,
  { about, recipient, subject, body, userId }: NewMail,
  now: Date,
): Promise<void> => {
  await sql`
    insert into mail_outbox (about, recipient, subject, body, user_id, next_attempt_at, created_at)
    values (${about}, ${recipient}, ${subject}, ${body}, ${userId}, ${now}, ${now})`
}

/** Counts all mails that wait in the outbox, and those among them that this user caused. */
export const countMail = async (sql: Sql, userId: string): Promise<{ all: number; own: number }> => {
  const [row] = await sql<[{ all: number; own: number }]>`
    select count(*) as all, count(*) filter (where user_id = ${userId}) as own from mail_outbox`
  return row
}

/** Claims the mail that has been due longest. No other process can claim it for `secondsToSend`. */
export const claimDue = async (sql: Sql, now: Date, secondsToSend: number): Promise<MailRow | undefined> => {
  const [row] = await sql<MailRow[]>`
    update mail_outbox set attempts = attempts + 1, next_attempt_at = ${new Date(now.getTime() + secondsToSend * 1000)}
    where id = (
      select id from mail_outbox where next_attempt_at <= ${now}
      order by next_attempt_at, created_at limit 1 for update skip locked)
    returning id, about, recipient, subject, body, attempts`
  return row
}

export const putOff = async (sql: Sql, id: string, until: Date): Promise<void> => {
  await sql`update mail_outbox set next_attempt_at = ${until} where id = ${id}`
}

export const deleteMail = async (sql: Sql, id: string): Promise<void> => {
  await sql`delete from mail_outbox where id = ${id}`
}

export const deleteMailAbout = async (sql: Sql, about: string): Promise<void> => {
  await sql`delete from mail_outbox where about = ${about}`
}
