// A webhook provider sends webhooks to endpoints. The provider is either control itself (embedded.ts) or a server with the API of
// Svix (svix.ts).
import type { Delivery, Outcome } from './delivery.ts'
import type { ProviderKind } from './queue.ts'

/** A failure of the webhook provider, with a message that the organization may see. */
export class ProviderFailed extends Error {}

export type PortalAccess = { token: string; url: string }

export type WebhookProvider = {
  kind: ProviderKind
  /**
   * Finds or creates the organization's application at the provider. Returns the application's id there. Throws if the
   * provider fails.
   */
  initialize: (organization: { id: string; name: string }) => Promise<string>
  /**
   * Makes a link to the portal. `applicationId`: the id that `initialize` has returned. `makerHash`: hash of the caller's
   * API key, or null.
   */
  openPortal: (
    applicationId: string,
    who: { organizationId: string; userId: string; makerHash: string | null },
  ) => Promise<PortalAccess>
  /**
   * Returns whether an organization has endpoints at the provider. The embedded sender ignores disabled endpoints.
   * `applicationId`: the id that `initialize` has returned.
   */
  hasEndpoints: (applicationId: string, organizationId: string) => Promise<boolean>
  /** Makes one attempt to deliver a message. If the receiver fails, nothing is thrown: the returned outcome says so. */
  attempt: (delivery: Delivery) => Promise<Outcome>
}
