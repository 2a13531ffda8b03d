// The endpoints below `/webhooks/organizations/{organizationId}`. Some work only while control itself sends the webhooks
// (embedded.ts).
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
    summary: 'A link to the page where endpoints are kept; it works once, within minutes.',
    params: OrganizationId,
    replies: { 200: PortalAccess },
    run: ({ caller }) => openPortal(parts, caller),
  }),
  route({
    method: 'GET',
    path: `${base}/initialization-status`,
    needs: 'member',
    summary: 'Whether the webhook provider knows the organization, and what went wrong.',
    params: OrganizationId,
    replies: { 200: InitializationStatus },
    run: ({ organization }) => viewStatus(parts, organization.id),
  }),
  route({
    method: 'POST',
    path: `${base}/initialize`,
    needs: 'owner',
    summary: 'Makes the organization known to the webhook provider, or finds it there.',
    params: OrganizationId,
    replies: { 200: InitializationStatus },
    run: ({ organization }) => initialize(parts, organization),
  }),
  route({
    method: 'POST',
    path: `${base}/refresh-endpoints`,
    needs: 'owner',
    summary: 'Finds out at once about endpoints that were added or taken away at the webhook provider.',
    params: OrganizationId,
    replies: { 200: null },
    run: ({ organization }) => refreshEndpoints(parts, organization.id),
  }),
  route({
    method: 'GET',
    path: `${base}/endpoints`,
    needs: 'owner',
    summary: 'The endpoints that the embedded sender posts to.',
    params: OrganizationId,
    replies: { 200: Type.Array(Endpoint) },
    run: async ({ organization }) => (await viewEndpoints(parts, organization.id)).map(asEndpointView),
  }),
  route({
    method: 'POST',
    path: `${base}/endpoints`,
    needs: 'owner',
    summary: 'Adds an endpoint. Its secret is told now and never again.',
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
    summary: 'One endpoint.',
    params: EndpointId,
    replies: { 200: Endpoint },
    run: async ({ organization, params }) =>
      asEndpointView(await getEndpoint(parts, organization.id, params.endpointId)),
  }),
  route({
    method: 'PATCH',
    path: `${base}/endpoints/:endpointId`,
    needs: 'owner',
    summary: 'Changes what is given of an endpoint. Disabling it gives up what waits for it.',
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
    summary: 'Removes an endpoint with its attempts.',
    params: EndpointId,
    replies: { 204: null },
    run: ({ organization, params }) => removeEndpoint(parts, organization.id, params.endpointId),
  }),
  route({
    method: 'POST',
    path: `${base}/endpoints/:endpointId/rotate-secret`,
    needs: 'owner',
    summary: 'A new secret, told now and never again. The old one signs too for another 24 hours.',
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
    summary: 'What was sent to an endpoint and how it ended, newest first; kept for a week.',
    params: EndpointId,
    query: AttemptsQuery,
    replies: { 200: AttemptPage },
    run: ({ organization, params, query }) => viewAttempts(parts, organization.id, params.endpointId, query),
  }),
  route({
    method: 'POST',
    path: `${base}/endpoints/:endpointId/messages/:messageId/resend`,
    needs: 'owner',
    summary: 'Sends a message to an endpoint once more.',
    params: MessageId,
    replies: { 202: null },
    run: ({ organization, params }) => resend(parts, organization.id, params.endpointId, params.messageId),
  }),
]
