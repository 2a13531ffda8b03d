// The kinds of events and what each says (contract/control-plane.md §13).
export const webhookEvents = [
  'sandbox.created',
  'sandbox.state.updated',
  'snapshot.created',
  'snapshot.state.updated',
  'snapshot.removed',
  // Nothing makes these until there are volumes.
  'volume.created',
  'volume.state.updated',
] as const

export type WebhookEvent = (typeof webhookEvents)[number]

export const isWebhookEvent = (word: string): word is WebhookEvent =>
  (webhookEvents as readonly string[]).includes(word)

export type Message = {
  id: number
  /** What receivers know it by; the same in every attempt. */
  publicId: string
  organizationId: string
  event: WebhookEvent
  /** The sandbox or the snapshot. */
  subjectId: string
  name: string | null
  sandboxClass: string | null
  oldState: string | null
  state: string | null
  at: Date
}

/** The same for the same message, byte by byte, in every attempt. */
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

const detailsOf = ({ event, name, sandboxClass, oldState, state }: Message, at: string) => {
  switch (event) {
    case 'sandbox.created':
      return { state, sandboxClass, createdAt: at }
    case 'sandbox.state.updated':
      return { oldState, newState: state, updatedAt: at }
    case 'snapshot.created':
    case 'volume.created':
      return { name, state, createdAt: at }
    case 'snapshot.state.updated':
    case 'volume.state.updated':
      return { name, oldState, newState: state, updatedAt: at }
    case 'snapshot.removed':
      return { name, removedAt: at }
  }
}
