// The endpoints of `/organizations`. The guard answers 404 to callers who do not belong to the organization. Endpoints only for
// operators are in operator-routes.ts.

import Type from 'typebox'
import { asOrganizationView, type Organization } from '#src/control/people/organization.ts'
import { OrganizationId } from '#src/control/people/schemas.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import type { RunningParts } from '../running.ts'
import { createOrganization } from './create.ts'
import { deleteOrganization } from './delete.ts'
import { getOtelConfig, removeOtelConfig, setOtelConfig, viewOtelConfig } from './otel-config.ts'
import {
  CreateOrganization,
  DefaultRegion,
  ExperimentalConfig,
  mostExperimentalBytes,
  Organization as OrganizationShape,
  OtelConfig,
} from './schemas.ts'
import { listOrganizationsOf } from './service.ts'
import { setDefaultRegion, setExperimentalConfig } from './settings.ts'

export const organizationRoutes = (parts: RunningParts): ControlRoute[] => {
  const view = (organization: Organization) => {
    const { id, otelConfig } = organization
    return asOrganizationView(organization, parts.clock.now(), viewOtelConfig(parts, id, otelConfig))
  }
  return [
    route({
      method: 'GET',
      path: '/organizations',
      needs: 'user',
      summary: 'Lists the user’s organizations. With an API key, lists only the organization of the key.',
      replies: { 200: Type.Array(OrganizationShape) },
      run: async ({ user, caller }) => {
        const { sql } = parts.database
        const own = caller.keyName === undefined ? await listOrganizationsOf(sql, user.id) : [caller.organization]
        return own.map(view)
      },
    }),
    route({
      method: 'POST',
      path: '/organizations',
      needs: 'user',
      summary: 'Creates an organization. The caller becomes its owner.',
      body: CreateOrganization,
      replies: { 201: OrganizationShape },
      run: async ({ caller, body }) => view(await createOrganization(parts, caller, body)),
    }),
    route({
      method: 'GET',
      path: '/organizations/:organizationId',
      needs: 'member',
      summary: 'Returns one organization.',
      params: OrganizationId,
      replies: { 200: OrganizationShape },
      run: ({ organization }) => view(organization),
    }),
    route({
      method: 'DELETE',
      path: '/organizations/:organizationId',
      needs: 'owner',
      summary:
        'Deletes an organization with everything in it. Its credentials stop working, and its sandboxes are destroyed.',
      params: OrganizationId,
      replies: { 204: null },
      run: ({ caller }) => deleteOrganization(parts, caller),
    }),
    route({
      method: 'PATCH',
      path: '/organizations/:organizationId/default-region',
      needs: 'owner',
      summary:
        'Sets the default region for new sandboxes. It can be set only once, unless the operator allows changes.',
      params: OrganizationId,
      body: DefaultRegion,
      replies: { 204: null },
      run: ({ organization, body }) => setDefaultRegion(parts, organization.id, body),
    }),
    route({
      method: 'PUT',
      path: '/organizations/:organizationId/experimental-config',
      needs: 'owner',
      summary: 'Replaces the experimental configuration. A body of null, or no body, removes the configuration.',
      params: OrganizationId,
      body: ExperimentalConfig,
      bodyOptional: true,
      bodyLimit: mostExperimentalBytes,
      replies: { 200: null },
      run: ({ organization, body }) => setExperimentalConfig(parts, organization.id, body),
    }),
    route({
      method: 'GET',
      path: '/organizations/:organizationId/otel-config',
      needs: 'owner or collector',
      summary:
        'Returns the endpoint and the headers for the organization’s telemetry. Only a collector sees the header values.',
      params: OrganizationId,
      replies: { 200: OtelConfig },
      run: ({ params, isCollector }) => getOtelConfig(parts, params.organizationId, { isCollector }),
    }),
    route({
      method: 'PUT',
      path: '/organizations/:organizationId/otel-config',
      needs: 'owner',
      summary:
        'Replaces the endpoint and the headers for telemetry. A header value of only asterisks keeps the stored value.',
      params: OrganizationId,
      body: OtelConfig,
      replies: { 204: null },
      run: ({ organization, body }) => setOtelConfig(parts, organization.id, body),
    }),
    route({
      method: 'DELETE',
      path: '/organizations/:organizationId/otel-config',
      needs: 'owner',
      summary: 'Removes the telemetry configuration. The telemetry of sandboxes is no longer forwarded.',
      params: OrganizationId,
      replies: { 204: null },
      run: ({ organization }) => removeOtelConfig(parts, organization.id),
    }),
  ]
}
