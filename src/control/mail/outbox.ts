// Sends what is in the outbox. A mail leaves the table when a server has taken it, so a crash at any moment loses none;
// at worst one is sent twice, with the same Message-ID. Several processes may send at once: each takes its own.
import { setTimeout as pause } from 'node:timers/promises'
import { repeat } from '#src/kit/repeat.ts'
import type { Parts } from '../parts.ts'
import { claimDue, deleteMail, type MailRow, putOff } from './store.ts'
import { MailRefused, type MailTransport } from './transport.ts'

export type Outbox = {
  /** Something may be in it: looks soon, without being waited for. */
  nudge: () => void
  /** Sends what is due, as far as it can be sent now. */
  deliver: () => Promise<void>
  close: () => Promise<void>
}

type OutboxParts = Pick<Parts, 'database' | 'clock' | 'log'> & { transport: MailTransport }

/** How long to wait after each attempt that failed; after the last it is given up, about two days after the first. */
const minutesBetween = [1, 5, 15, 60, 240, 720, 1440] as const
/** Longer than any attempt takes. */
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
    // Who cannot be reached for one cannot be for the next: the others wait for the next sweep.
    for (let sent = 0; sent < mailsPerSweep && !isClosed; sent += 1) if (!(await sendNext(parts))) return
  }
  /** After the run that goes on now, which may have looked already; who asks while that is awaited shares the next. */
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
      // What a slow server has not taken by then is due again later.
      const patience = new AbortController()
      await Promise.race([running.catch(() => {}), pause(secondsToClose * 1000, undefined, patience).catch(() => {})])
      patience.abort()
    },
  }
}

/** Answers whether to go on with the next. */
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
