// The embedded sender: the webhook provider with which control itself posts signed messages to endpoints.
import { OutboundError } from '#src/control/outbound/error.ts'
import type { Delivery, Outcome } from './delivery.ts'
import { findEndpointById } from './endpoint-store.ts'
import { secretsOf } from './endpoints.ts'
import { payloadOf } from './event.ts'
import type { WebhookParts } from './parts.ts'
import { openLink } from './portal/tokens.ts'
import type { WebhookProvider } from './provider.ts'
import { signedHeaders } from './signature.ts'

/**
 * Timeout of one attempt to deliver. The timeout must be well below `leaseSeconds` (queue.ts), after which another process may send
 * the delivery.
 */
const timeoutMilliseconds = 15_000

export const createEmbedded = (parts: Omit<WebhookParts, 'provider'>): WebhookProvider => ({
  kind: 'embedded',
  initialize: async ({ id }) => `app_${id}`,
  openPortal: (_applicationId, who) => openLink(parts, who),
  // The endpoints are in control's own database, so the result is always up to date.
  hasEndpoints: async (_applicationId, organizationId) => {
    const [row] = await parts.database.sql<[{ found: boolean }]>`
      select exists (select from webhook_endpoints
        where organization_id = ${organizationId} and disabled_at is null) as found`
    return row.found
  },
  attempt: (delivery) => post({ ...parts, provider: undefined }, delivery),
})

const post = async (parts: WebhookParts, { endpointId, message }: Delivery): Promise<Outcome> => {
  const { database, outbound, settings } = parts
  const endpoint = await findEndpointById(database.sql, endpointId)
  if (endpoint === undefined) return { kind: 'failed', status: null, error: 'The endpoint is no longer there.' }
  const body = JSON.stringify(payloadOf(message))
  // The real time, even if a test moves the clock: receivers refuse timestamps older than a few minutes.
  const at = new Date()
  const headers = {
    'content-type': 'application/json',
    'user-agent': `Alcove/${settings.version}`,
    ...signedHeaders(secretsOf(parts, endpoint, parts.clock.now()), { id: message.publicId, at, body }),
  }
  try {
    const { status } = await outbound.send({ method: 'POST', url: endpoint.url, headers, body, timeoutMilliseconds })
    if (status >= 200 && status < 300) return { kind: 'delivered', status }
    // In Standard Webhooks, 410 means that the endpoint must not get further messages.
    if (status === 410)
      return { kind: 'gone', status, error: 'The endpoint answered 410, which means that it wants no more messages.' }
    const error = status >= 300 && status < 400 ? `The endpoint answered ${status}: redirects are not followed.` : null
    return { kind: 'failed', status, error }
  } catch (error) {
    if (error instanceof OutboundError) return { kind: 'failed', status: null, error: error.message }
    throw error
  }
}
