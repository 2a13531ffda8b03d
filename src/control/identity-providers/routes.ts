// The endpoints `/organizations/{organizationId}/identity-providers`. All rules are in service.ts.

import Type from 'typebox'
import { OrganizationId } from '#src/control/people/schemas.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import {
  CreateIdentityProvider,
  IdentityProviderView,
  ProviderId,
  ProviderTemplate,
  TestConnection,
  TestConnectionResult,
  UpdateIdentityProvider,
} from './schemas.ts'
import {
  createProvider,
  getProviderView,
  type IdentityProviderParts,
  listProviderViews,
  removeProvider,
  testConnection,
  updateProvider,
} from './service.ts'
import { templates } from './templates.ts'

export const identityProviderRoutes = (parts: IdentityProviderParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: '/organizations/:organizationId/identity-providers',
    needs: 'manage:sso',
    givesAccess: true,
    summary: 'Adds an identity provider that members may sign in by.',
    params: OrganizationId,
    body: CreateIdentityProvider,
    replies: { 201: IdentityProviderView },
    run: ({ caller, organization, body }) => createProvider(parts, { caller, organization }, body),
  }),
  route({
    method: 'GET',
    path: '/organizations/:organizationId/identity-providers',
    needs: 'manage:sso',
    summary: 'Lists the identity providers of the organization.',
    params: OrganizationId,
    replies: { 200: Type.Array(IdentityProviderView) },
    run: ({ caller, organization }) => listProviderViews(parts, { caller, organization }),
  }),
  route({
    method: 'GET',
    path: '/organizations/:organizationId/identity-providers/templates',
    needs: 'manage:sso',
    summary: 'What is known of identity providers that many use.',
    params: OrganizationId,
    replies: { 200: Type.Array(ProviderTemplate) },
    run: () => templates,
  }),
  route({
    method: 'POST',
    path: '/organizations/:organizationId/identity-providers/test-connection',
    needs: 'manage:sso',
    summary: 'Tells whether an issuer answers discovery.',
    params: OrganizationId,
    body: TestConnection,
    replies: { 200: TestConnectionResult },
    run: ({ caller, organization, body }) => testConnection(parts, { caller, organization }, body),
  }),
  route({
    method: 'GET',
    path: '/organizations/:organizationId/identity-providers/:id',
    needs: 'manage:sso',
    summary: 'One identity provider of the organization.',
    params: ProviderId,
    replies: { 200: IdentityProviderView },
    run: ({ caller, organization, params }) => getProviderView(parts, { caller, organization }, params.id),
  }),
  route({
    method: 'PATCH',
    path: '/organizations/:organizationId/identity-providers/:id',
    needs: 'manage:sso',
    givesAccess: true,
    summary: 'Changes what is named of an identity provider.',
    params: ProviderId,
    body: UpdateIdentityProvider,
    replies: { 200: IdentityProviderView },
    run: ({ caller, organization, params, body }) => updateProvider(parts, { caller, organization }, params.id, body),
  }),
  route({
    method: 'DELETE',
    path: '/organizations/:organizationId/identity-providers/:id',
    needs: 'manage:sso',
    summary: 'Removes an identity provider, its claims of domains and its links.',
    params: ProviderId,
    replies: { 204: null },
    run: ({ caller, organization, params }) => removeProvider(parts, { caller, organization }, params.id),
  }),
]
