// Who sends webhooks for an organization: the embedded sender, or somebody with the API of Svix.
import type { Delivery, Outcome } from './delivery.ts'
import type { ProviderKind } from './queue.ts'

/** A failure of the provider, in a sentence that the organization may see. */
export class ProviderFailed extends Error {}

export type PortalAccess = { token: string; url: string }

export type WebhookProvider = {
  kind: ProviderKind
  /** Finds the application of an organization there, or makes it. Answers what the provider calls it; may fail. */
  initialize: (organization: { id: string; name: string }) => Promise<string>
  /** Opens the portal of an application that was initialized. `makerHash`: the hash of the API key that asks, if one does. */
  openPortal: (
    applicationId: string,
    who: { organizationId: string; userId: string; makerHash: string | null },
  ) => Promise<PortalAccess>
  /** Whether there is anybody to send to, as the provider knows it now. */
  hasEndpoints: (applicationId: string, organizationId: string) => Promise<boolean>
  /** Makes an attempt. Never throws for what the other side does. */
  attempt: (delivery: Delivery) => Promise<Outcome>
}
