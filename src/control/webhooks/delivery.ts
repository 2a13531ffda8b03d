// The delivery of one webhook message to one endpoint, and its outcome.
import type { Message } from './event.ts'

export type Delivery = {
  id: number
  endpointId: string
  /** The number of attempts for this delivery, including the present attempt. */
  attempts: number
  message: Message
}

/**
 * The result of an attempt. `gone`: the endpoint has answered that it wants no more messages, so the delivery is not
 * retried.
 */
export type Outcome =
  | { kind: 'delivered'; status: number | null }
  | { kind: 'failed'; status: number | null; error: string | null }
  | { kind: 'gone'; status: number; error: string }

/** Returns a sentence that says why an attempt failed. */
export const sentenceOf = ({ status, error }: { status: number | null; error: string | null }): string =>
  error ?? `The endpoint answered ${status}.`
