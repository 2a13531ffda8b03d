// Defines the webhook messages: the kinds of events and the payloads. The reference page is docs/reference/webhooks.md.
import type { Cause } from '#src/wire/runner-link.ts'

export const webhookEvents = [
  'sandbox.created',
  'sandbox.state.updated',
  'sandbox.mishap',
  'snapshot.created',
  'snapshot.state.updated',
  'snapshot.removed',
  'volume.created',
  'volume.state.updated',
] as const

export type WebhookEvent = (typeof webhookEvents)[number]

export const isWebhookEvent = (word: string): word is WebhookEvent =>
  (webhookEvents as readonly string[]).includes(word)

export type Message = {
  id: number
  /** The id of the message, as receivers see it. All attempts to send the message have this id. */
  publicId: string
  organizationId: string
  event: WebhookEvent
  /** Id of the sandbox, snapshot or volume that the message is about. */
  subjectId: string
  name: string | null
  sandboxClass: string | null
  oldState: string | null
  state: string | null
  at: Date
  /**
   * Who made the change. `by`, `cause` and `labels` are null for snapshots and volumes, and in messages older than these
   * fields.
   */
  by: { kind: string; id: string } | null
  reason: string | null
  cause: Cause | null
  labels: Record<string, string> | null
}

/** Returns the payload of a message. Every attempt to send the message has exactly this payload. */
export const payloadOf = (message: Message): Record<string, unknown> => {
  const at = message.at.toISOString()
  return {
    event: message.event,
    timestamp: at,
    id: message.subjectId,
    organizationId: message.organizationId,
    ...detailsOf(message, at),
  }
}

/** Returns who made the change and why, as the timeline shows it. */
const whyOf = ({ by, reason, cause, labels }: Message) => ({
  ...(labels === null ? {} : { labels }),
  ...(by === null ? {} : { by }),
  ...(reason === null ? {} : { reason }),
  ...(cause === null ? {} : { cause }),
})

const detailsOf = (message: Message, at: string) => {
  const { event, name, sandboxClass, oldState, state } = message
  const why = whyOf(message)
  switch (event) {
    case 'sandbox.created':
      return { name, state, sandboxClass, createdAt: at, ...why }
    case 'sandbox.state.updated':
      return { name, oldState, newState: state, updatedAt: at, ...why }
    case 'sandbox.mishap':
      return { name, state, happenedAt: at, ...why }
    case 'snapshot.created':
    case 'volume.created':
      return { name, state, createdAt: at, ...why }
    case 'snapshot.state.updated':
    case 'volume.state.updated':
      return { name, oldState, newState: state, updatedAt: at, ...why }
    case 'snapshot.removed':
      return { name, removedAt: at }
  }
}
