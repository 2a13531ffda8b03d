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
      summary: 'The organizations that the credential reaches: all of the user, or of an API key its own.',
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
      summary: 'Makes an organization that belongs to the caller.',
      body: CreateOrganization,
      replies: { 201: OrganizationShape },
      run: async ({ caller, body }) => view(await createOrganization(parts, caller, body)),
    }),
    route({
      method: 'GET',
      path: '/organizations/:organizationId',
      needs: 'member',
      summary: 'One organization.',
      params: OrganizationId,
      replies: { 200: OrganizationShape },
      run: ({ organization }) => view(organization),
    }),
    route({
      method: 'DELETE',
      path: '/organizations/:organizationId',
      needs: 'owner',
      summary:
        'Ends an organization with everything in it: no credential reaches it any more, its sandboxes are destroyed.',
      params: OrganizationId,
      replies: { 204: null },
      run: ({ caller }) => deleteOrganization(parts, caller),
    }),
    route({
      method: 'PATCH',
      path: '/organizations/:organizationId/default-region',
      needs: 'owner',
      summary: 'Says where sandboxes go that name no region; once.',
      params: OrganizationId,
      body: DefaultRegion,
      replies: { 204: null },
      run: ({ organization, body }) => setDefaultRegion(parts, organization.id, body),
    }),
    route({
      method: 'PUT',
      path: '/organizations/:organizationId/experimental-config',
      needs: 'owner',
      summary: 'Replaces the experimental configuration; null or no body clears it.',
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
      summary: 'Where telemetry goes; only a collector sees the values of its headers.',
      params: OrganizationId,
      replies: { 200: OtelConfig },
      run: ({ params, isCollector }) => getOtelConfig(parts, params.organizationId, { isCollector }),
    }),
    route({
      method: 'PUT',
      path: '/organizations/:organizationId/otel-config',
      needs: 'owner',
      summary: 'Says where telemetry goes; a header whose value is only asterisks keeps the one that is stored.',
      params: OrganizationId,
      body: OtelConfig,
      replies: { 204: null },
      run: ({ organization, body }) => setOtelConfig(parts, organization.id, body),
    }),
    route({
      method: 'DELETE',
      path: '/organizations/:organizationId/otel-config',
      needs: 'owner',
      summary: 'Telemetry goes nowhere any more.',
      params: OrganizationId,
      replies: { 204: null },
      run: ({ organization }) => removeOtelConfig(parts, organization.id),
    }),
  ]
}
