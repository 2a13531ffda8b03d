// The endpoints for the quotas of organizations. Members read quotas, and operators change them.

import Type from 'typebox'
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import { OrganizationId } from '#src/control/people/schemas.ts'
import type { RunningParts } from '../running.ts'
import { changeQuota, changeRegionQuota } from './change.ts'
import {
  AvailableSandboxClass,
  OrganizationUsageOverview,
  QuotaRegion,
  UpdateOrganizationQuota,
  UpdateOrganizationRegionQuota,
} from './schemas.ts'
import { viewAvailableClasses, viewUsage } from './usage.ts'

export const quotaRoutes = (parts: RunningParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/organizations/:organizationId/usage',
    needs: 'member',
    summary: 'What the organization may have and what it has, for each region and class of sandboxes.',
    params: OrganizationId,
    replies: { 200: OrganizationUsageOverview },
    run: ({ organization }) => viewUsage(parts, organization),
  }),
  route({
    method: 'GET',
    path: '/organizations/:organizationId/available-sandbox-classes',
    needs: 'member',
    summary: 'The classes of sandboxes that the organization can make, by region.',
    params: OrganizationId,
    replies: { 200: Type.Array(AvailableSandboxClass) },
    run: ({ organization }) => viewAvailableClasses(parts, organization),
  }),
  route({
    method: 'PATCH',
    path: '/organizations/:organizationId/quota',
    needs: 'admin',
    summary: 'Changes what an organization may have. What is absent or null stays.',
    params: OrganizationId,
    body: UpdateOrganizationQuota,
    replies: { 204: null },
    run: ({ params, body }) => changeQuota(parts, params.organizationId, body),
  }),
  route({
    method: 'PATCH',
    path: '/organizations/:organizationId/quota/:regionId',
    needs: 'admin',
    summary:
      'Changes what an organization may have of a region, for one class of sandboxes. What is absent or null stays.',
    params: QuotaRegion,
    body: UpdateOrganizationRegionQuota,
    replies: { 204: null },
    run: ({ params, body }) => changeRegionQuota(parts, params, body),
  }),
]
