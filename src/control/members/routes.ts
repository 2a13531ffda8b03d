// The endpoints for the members of an organization: list, change access, remove and leave. All rules are in service.ts.

import Type from 'typebox'
import type { ChangeParts } from '#src/control/auth/change-membership.ts'
import { OrganizationId } from '#src/control/people/schemas.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import { Member, MemberAccess, MemberId } from './schemas.ts'
import { changeAccess, leaveOrganization, listMembers, removeMember } from './service.ts'

export const memberRoutes = (parts: ChangeParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/organizations/:organizationId/users',
    needs: 'member',
    summary: 'Lists the members of the organization with their roles.',
    params: OrganizationId,
    replies: { 200: Type.Array(Member) },
    run: ({ organization }) => listMembers(parts, organization.id),
  }),
  route({
    method: 'POST',
    path: '/organizations/:organizationId/users/:userId/access',
    needs: 'owner',
    givesAccess: true,
    summary: 'Replaces the role and the assigned roles of another member.',
    params: MemberId,
    body: MemberAccess,
    replies: { 200: Member },
    run: ({ caller, organization, params, body }) =>
      changeAccess(parts, { caller, organizationId: organization.id }, params.userId, body),
  }),
  route({
    method: 'DELETE',
    path: '/organizations/:organizationId/users/:userId',
    needs: 'owner',
    summary: 'Removes another member, and that member’s API keys, from the organization.',
    params: MemberId,
    replies: { 204: null },
    run: ({ caller, organization, params }) =>
      removeMember(parts, { caller, organizationId: organization.id }, params.userId),
  }),
  route({
    method: 'POST',
    path: '/organizations/:organizationId/leave',
    needs: 'member',
    summary: 'Removes the caller, and the caller’s API keys, from the organization.',
    params: OrganizationId,
    replies: { 204: null },
    run: ({ caller, organization }) => leaveOrganization(parts, { caller, organization }),
  }),
]
