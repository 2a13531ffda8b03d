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
    summary: 'Returns the quotas and the current usage of the organization, by region and sandbox class.',
    params: OrganizationId,
    replies: { 200: OrganizationUsageOverview },
    run: ({ organization }) => viewUsage(parts, organization),
  }),
  route({
    method: 'GET',
    path: '/organizations/:organizationId/available-sandbox-classes',
    needs: 'member',
    summary: 'Lists the sandbox classes that the organization can use in each region.',
    params: OrganizationId,
    replies: { 200: Type.Array(AvailableSandboxClass) },
    run: ({ organization }) => viewAvailableClasses(parts, organization),
  }),
  route({
    method: 'PATCH',
    path: '/organizations/:organizationId/quota',
    needs: 'admin',
    summary: 'Changes quotas of an organization. Absent and null fields stay unchanged.',
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
      'Changes quotas of an organization in one region, for one sandbox class. Absent and null fields stay unchanged.',
    params: QuotaRegion,
    body: UpdateOrganizationRegionQuota,
    replies: { 204: null },
    run: ({ params, body }) => changeRegionQuota(parts, params, body),
  }),
]
