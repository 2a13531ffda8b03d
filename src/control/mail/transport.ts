// How a mail leaves: by SMTP where the operator has named a server, else as a line of the log.
import { createTransport } from 'nodemailer'
import type { Logger } from '#src/kit/log.ts'
import type { SmtpAddress } from '#src/kit/smtp-address.ts'

export type OutgoingMail = {
  /** Stays the same however often it is tried, so that whoever gets it twice can tell. */
  id: string
  recipient: string
  subject: string
  text: string
}

export type MailTransport = {
  /** Resolves once somebody else answers for the mail. Throws {@link MailRefused} if they never will. */
  send: (mail: OutgoingMail) => Promise<void>
}

export class MailRefused extends Error {}

/** Milliseconds. */
const limits = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000, dnsTimeout: 10_000 }

const replyCode = (error: unknown): number => Number((error as { responseCode?: unknown } | null)?.responseCode)

export const smtpTransport = ({ host, port, isTls, needsTls, credentials, from }: SmtpAddress): MailTransport => {
  const transport = createTransport({
    ...limits,
    host,
    port,
    secure: isTls,
    requireTLS: needsTls,
    ...(credentials === undefined ? {} : { auth: credentials }),
    // Nothing that a mail says is ever read from a file or fetched.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const domain = /@([^>]+)/.exec(from)?.[1]
  return {
    send: async ({ id, recipient, subject, text }) => {
      try {
        await transport.sendMail({
          from,
          to: { name: '', address: recipient },
          subject,
          text,
          messageId: `<${id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
        })
      } catch (error) {
        // RFC 5321 §4.2.1: 5yz is a "no" that stays one. Being refused as a client (530, 535) is the operator's to mend.
        const code = replyCode(error)
        if (code >= 550 && code < 560) throw new MailRefused('The mail server will not take it.', { cause: error })
        throw error
      }
    },
  }
}

/** The operator has named no server: whoever reads the log can pass it on. */
export const logTransport = (log: Logger): MailTransport => ({
  send: async ({ id, recipient, subject, text }) => {
    log.info(
      { isPrivate: true, mailId: id, recipient, subject, text },
      'a mail, as there is no ALCOVE_SMTP_URL to send it by',
    )
  },
})
