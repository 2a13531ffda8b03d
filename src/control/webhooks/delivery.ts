// A message on its way to an endpoint.
import type { Message } from './event.ts'

export type Delivery = {
  id: number
  endpointId: string
  /** How often it has been attempted, this time included. */
  attempts: number
  message: Message
}

/** How an attempt ended. `gone`: there is no use in ever trying again. */
export type Outcome =
  | { kind: 'delivered'; status: number | null }
  | { kind: 'failed'; status: number | null; error: string | null }
  | { kind: 'gone'; status: number; error: string }

/** What is wrong, as a sentence for whoever reads the attempts. */
export const sentenceOf = ({ status, error }: { status: number | null; error: string | null }): string =>
  error ?? `It answered ${status}.`
