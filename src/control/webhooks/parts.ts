import type { Outbound } from '#src/control/outbound/outbound.ts'
import type { Parts } from '#src/control/parts.ts'
import type { WebhookProvider } from './provider.ts'

export type WebhookParts = Parts & {
  outbound: Outbound
  /** The webhook provider: control itself or Svix. Undefined: the operator has turned webhooks off. */
  provider: WebhookProvider | undefined
}
