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
    summary: 'Adds an identity provider with which members can sign in.',
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
    summary: 'Lists the usual settings of widely used identity providers.',
    params: OrganizationId,
    replies: { 200: Type.Array(ProviderTemplate) },
    run: () => templates,
  }),
  route({
    method: 'POST',
    path: '/organizations/:organizationId/identity-providers/test-connection',
    needs: 'manage:sso',
    summary: 'Tests whether the OpenID Connect discovery document of an issuer can be read.',
    params: OrganizationId,
    body: TestConnection,
    replies: { 200: TestConnectionResult },
    run: ({ caller, organization, body }) => testConnection(parts, { caller, organization }, body),
  }),
  route({
    method: 'GET',
    path: '/organizations/:organizationId/identity-providers/:id',
    needs: 'manage:sso',
    summary: 'Returns one identity provider of the organization.',
    params: ProviderId,
    replies: { 200: IdentityProviderView },
    run: ({ caller, organization, params }) => getProviderView(parts, { caller, organization }, params.id),
  }),
  route({
    method: 'PATCH',
    path: '/organizations/:organizationId/identity-providers/:id',
    needs: 'manage:sso',
    givesAccess: true,
    summary: 'Changes the given fields of an identity provider. Other fields stay unchanged.',
    params: ProviderId,
    body: UpdateIdentityProvider,
    replies: { 200: IdentityProviderView },
    run: ({ caller, organization, params, body }) => updateProvider(parts, { caller, organization }, params.id, body),
  }),
  route({
    method: 'DELETE',
    path: '/organizations/:organizationId/identity-providers/:id',
    needs: 'manage:sso',
    summary: 'Deletes an identity provider, with its e-mail domains and the links between its accounts and users.',
    params: ProviderId,
    replies: { 204: null },
    run: ({ caller, organization, params }) => removeProvider(parts, { caller, organization }, params.id),
  }),
]
