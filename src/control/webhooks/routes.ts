// The endpoints below `/webhooks/organizations/{organizationId}`. Some of these endpoints work only while control itself sends the
// webhooks (embedded.ts).
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import {
  asEndpointView,
  changeEndpoint,
  createEndpoint,
  getEndpoint,
  removeEndpoint,
  resend,
  rotateSecret,
  viewAttempts,
  viewEndpoints,
} from './endpoints.ts'
import type { WebhookParts } from './parts.ts'
import {
  AttemptPage,
  AttemptsQuery,
  ChangeEndpoint,
  CreateEndpoint,
  Endpoint,
  EndpointId,
  EndpointSecret,
  EndpointWithSecret,
  InitializationStatus,
  MessageId,
  OrganizationId,
  PortalAccess,
} from './schemas.ts'
import { initialize, openPortal, refreshEndpoints, viewStatus } from './service.ts'

const base = '/webhooks/organizations/:organizationId'

export const webhookRoutes = (parts: WebhookParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: `${base}/app-portal-access`,
    needs: 'owner',
    summary: 'Returns a link to the page where webhook endpoints are managed. The link works once, within minutes.',
    params: OrganizationId,
    replies: { 200: PortalAccess },
    run: ({ caller }) => openPortal(parts, caller),
  }),
  route({
    method: 'GET',
    path: `${base}/initialization-status`,
    needs: 'member',
    summary: 'Returns whether the organization is registered with the webhook provider, and the last error.',
    params: OrganizationId,
    replies: { 200: InitializationStatus },
    run: ({ organization }) => viewStatus(parts, organization.id),
  }),
  route({
    method: 'POST',
    path: `${base}/initialize`,
    needs: 'owner',
    summary: 'Registers the organization with the webhook provider, or finds its existing registration.',
    params: OrganizationId,
    replies: { 200: InitializationStatus },
    run: ({ organization }) => initialize(parts, organization),
  }),
  route({
    method: 'POST',
    path: `${base}/refresh-endpoints`,
    needs: 'owner',
    summary: 'Asks the webhook provider immediately whether the organization has endpoints there.',
    params: OrganizationId,
    replies: { 200: null },
    run: ({ organization }) => refreshEndpoints(parts, organization.id),
  }),
  route({
    method: 'GET',
    path: `${base}/endpoints`,
    needs: 'owner',
    summary: 'Lists the endpoints to which the embedded sender posts webhooks.',
    params: OrganizationId,
    replies: { 200: Type.Array(Endpoint) },
    run: async ({ organization }) => (await viewEndpoints(parts, organization.id)).map(asEndpointView),
  }),
  route({
    method: 'POST',
    path: `${base}/endpoints`,
    needs: 'owner',
    summary: 'Adds a webhook endpoint. Only this reply contains its signing secret.',
    params: OrganizationId,
    body: CreateEndpoint,
    replies: { 201: EndpointWithSecret },
    run: async ({ organization, body }) => {
      const { endpoint, secret } = await createEndpoint(parts, organization, body)
      return { ...asEndpointView(endpoint), secret }
    },
  }),
  route({
    method: 'GET',
    path: `${base}/endpoints/:endpointId`,
    needs: 'owner',
    summary: 'Returns a webhook endpoint.',
    params: EndpointId,
    replies: { 200: Endpoint },
    run: async ({ organization, params }) =>
      asEndpointView(await getEndpoint(parts, organization.id, params.endpointId)),
  }),
  route({
    method: 'PATCH',
    path: `${base}/endpoints/:endpointId`,
    needs: 'owner',
    summary:
      'Changes the given fields of a webhook endpoint. If the change disables the endpoint, its waiting deliveries fail.',
    params: EndpointId,
    body: ChangeEndpoint,
    replies: { 200: Endpoint },
    run: async ({ organization, params, body }) =>
      asEndpointView(await changeEndpoint(parts, organization.id, params.endpointId, body)),
  }),
  route({
    method: 'DELETE',
    path: `${base}/endpoints/:endpointId`,
    needs: 'owner',
    summary: 'Removes a webhook endpoint and the records of its delivery attempts.',
    params: EndpointId,
    replies: { 204: null },
    run: ({ organization, params }) => removeEndpoint(parts, organization.id, params.endpointId),
  }),
  route({
    method: 'POST',
    path: `${base}/endpoints/:endpointId/rotate-secret`,
    needs: 'owner',
    summary:
      'Creates a new signing secret, which only this reply contains. The old secret also signs for another 24 hours.',
    params: EndpointId,
    replies: { 200: EndpointSecret },
    run: async ({ organization, params }) => ({
      secret: await rotateSecret(parts, organization.id, params.endpointId),
    }),
  }),
  route({
    method: 'GET',
    path: `${base}/endpoints/:endpointId/attempts`,
    needs: 'owner',
    summary:
      'Lists the delivery attempts to an endpoint with their results, newest first. Attempts are kept for a week.',
    params: EndpointId,
    query: AttemptsQuery,
    replies: { 200: AttemptPage },
    run: ({ organization, params, query }) => viewAttempts(parts, organization.id, params.endpointId, query),
  }),
  route({
    method: 'POST',
    path: `${base}/endpoints/:endpointId/messages/:messageId/resend`,
    needs: 'owner',
    summary: 'Sends a message to a webhook endpoint again.',
    params: MessageId,
    replies: { 202: null },
    run: ({ organization, params }) => resend(parts, organization.id, params.endpointId, params.messageId),
  }),
]
