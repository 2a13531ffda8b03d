// Sends mails by SMTP if the operator has set a mail server. Otherwise each mail is written to the log.
import type { Transporter } from 'nodemailer'
import type { Logger } from '#src/kit/log.ts'
import type { SmtpAddress } from '#src/kit/smtp-address.ts'

export type OutgoingMail = {
  /** Id of the mail, the same for every attempt. If a receiver gets a mail twice, the equal ids show that. */
  id: string
  recipient: string
  subject: string
  text: string
}

export type MailTransport = {
  /**
   * Resolves when the mail server has accepted the mail. Throws {@link MailRefused} if the server refuses the mail
   * permanently.
   */
  send: (mail: OutgoingMail) => Promise<void>
}

export class MailRefused extends Error {}

/** Timeouts for the mail server, in milliseconds. */
const limits = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000, dnsTimeout: 10_000 }

const replyCode = (error: unknown): number => Number((error as { responseCode?: unknown } | null)?.responseCode)

export const smtpTransport = ({ host, port, isTls, needsTls, credentials, from }: SmtpAddress): MailTransport => {
  let opened: Promise<Transporter> | undefined
  const open = async () => {
    // nodemailer is loaded at the first mail, because most servers send no mails.
    const { createTransport } = await import('nodemailer')
    return createTransport({
      ...limits,
      host,
      port,
      secure: isTls,
      requireTLS: needsTls,
      ...(credentials === undefined ? {} : { auth: credentials }),
      // With these two options, nodemailer never reads a file or fetches a URL because of the content of a mail.
      disableFileAccess: true,
      disableUrlAccess: true,
    })
  }
  const domain = /@([^>]+)/.exec(from)?.[1]
  return {
    send: async ({ id, recipient, subject, text }) => {
      try {
        opened ??= open()
        const transport = await opened
        await transport.sendMail({
          from,
          to: { name: '', address: recipient },
          subject,
          text,
          messageId: `<${id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
        })
      } catch (error) {
        // After a reply from 550 to 559, the server will never accept this mail (RFC 5321 §4.2.1).
        // After any other error, the mail is tried again: the operator may correct, for example, a refused login (530, 535).
        const code = replyCode(error)
        if (code >= 550 && code < 560) throw new MailRefused('The mail server refused the mail.', { cause: error })
        throw error
      }
    },
  }
}

/** Logs the whole mail, for servers without SMTP: an operator who reads the log can pass the mail on. */
export const logTransport = (log: Logger): MailTransport => ({
  send: async ({ id, recipient, subject, text }) => {
    log.info(
      { isPrivate: true, mailId: id, recipient, subject, text },
      'a mail, as there is no ALCOVE_SMTP_URL to send it by',
    )
  },
})
