// Sends the mails of the outbox. A mail stays there until a mail server accepts it, so a crash loses no mail. A mail is dropped
// if the server refuses it permanently, or after the last retry.
// At worst a mail is sent twice, with the same Message-ID.
import { setTimeout as pause } from 'node:timers/promises'
import { repeat } from '#src/kit/repeat.ts'
import type { Parts } from '../parts.ts'
import { claimDue, deleteMail, type MailRow, putOff } from './store.ts'
import { MailRefused, type MailTransport } from './transport.ts'

export type Outbox = {
  /** Makes `deliver` run soon, without waiting for it. Call this after a mail was queued. */
  nudge: () => void
  /** Sends all mails that are due. Stops early if the mail server cannot be reached. */
  deliver: () => Promise<void>
  close: () => Promise<void>
}

type OutboxParts = Pick<Parts, 'database' | 'clock' | 'log'> & { transport: MailTransport }

/** Minutes before each retry of a mail. If the last retry fails, about two days after the first attempt, the mail is dropped. */
const minutesBetween = [1, 5, 15, 60, 240, 720, 1440] as const
/**
 * Seconds for which a process has claimed a mail. Meanwhile, no other process sends it. An attempt never takes so long.
 */
const secondsToSend = 120
const mailsPerSweep = 200
const secondsToClose = 1

export const openOutbox = (parts: OutboxParts, { sweepSeconds }: { sweepSeconds: number }): Outbox => {
  const { log } = parts
  let isClosed = false
  let running: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined

  const sendDue = async () => {
    next = undefined
    // If one mail fails because the mail server cannot be reached, the later mails wait for the next sweep.
    for (let sent = 0; sent < mailsPerSweep && !isClosed; sent += 1) if (!(await sendNext(parts))) return
  }
  /**
   * Starts a delivery after the end of the running delivery, which may have missed a new mail. Until then, all calls get the
   * same promise.
   */
  const deliver = () => {
    if (next !== undefined) return next
    next = running.catch(() => {}).then(sendDue)
    running = next
    return next
  }
  const complain = (error: unknown) => log.error({ err: error }, 'the outbox could not be emptied; it is tried again')
  const stopSweeping = repeat(sweepSeconds, deliver, complain)

  return {
    nudge: () => {
      if (!isClosed) deliver().catch(complain)
    },
    deliver,
    close: async () => {
      isClosed = true
      stopSweeping()
      // Waits `secondsToClose` for the running delivery. Mails that no server has accepted by then are sent later, by
      // this process or another.
      const patience = new AbortController()
      await Promise.race([running.catch(() => {}), pause(secondsToClose * 1000, undefined, patience).catch(() => {})])
      patience.abort()
    },
  }
}

/** Sends the mail that has been due longest. Returns whether the caller should continue with the next mail. */
const sendNext = async (parts: OutboxParts): Promise<boolean> => {
  const { database, clock, transport } = parts
  const mail = await claimDue(database.sql, clock.now(), secondsToSend)
  if (mail === undefined) return false
  const { id, recipient, subject, body } = mail
  try {
    await transport.send({ id, recipient, subject, text: body })
  } catch (error) {
    return await afterFailure(parts, mail, error)
  }
  await deleteMail(database.sql, id)
  return true
}

const afterFailure = async ({ database, clock, log }: OutboxParts, mail: MailRow, error: unknown): Promise<boolean> => {
  const { id, about, recipient, attempts } = mail
  const isRefused = error instanceof MailRefused
  const minutes = isRefused ? undefined : minutesBetween[attempts - 1]
  if (minutes === undefined) {
    log.error({ err: error, mailId: id, about, recipient, attempts }, 'a mail could not be sent and is given up')
    await deleteMail(database.sql, id)
  } else {
    log.warn({ err: error, mailId: id, about, attempts, minutes }, 'a mail could not be sent; it is tried again')
    await putOff(database.sql, id, new Date(clock.now().getTime() + minutes * 60_000))
  }
  return isRefused
}
