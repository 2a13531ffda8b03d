import type { Endpoint } from './use-webhooks.ts'

export type WebhookEvent = Endpoint['events'][number]

/** Each event that a webhook can send, with the moment at which it is sent. */
export const events: Record<WebhookEvent, string> = {
  'sandbox.created': 'a sandbox was made',
  'sandbox.state.updated': 'the state of a sandbox changed',
  'sandbox.mishap': 'something happened inside of a sandbox, such as a process killed for want of memory',
  'snapshot.created': 'a snapshot was asked for',
  'snapshot.state.updated': 'the state of a snapshot changed',
  'snapshot.removed': 'a snapshot was deleted',
  'volume.created': 'a volume was made',
  'volume.state.updated': 'the state of a volume changed',
}
