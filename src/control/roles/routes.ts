// The endpoints of `/organizations/{organizationId}/roles`. All rules are in service.ts.

import Type from 'typebox'
import type { ChangeParts } from '#src/control/auth/change-membership.ts'
import { OrganizationId } from '#src/control/people/schemas.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import { Role, RoleId, RoleText } from './schemas.ts'
import { createRole, deleteRole, listRoles, updateRole } from './service.ts'

export const roleRoutes = (parts: ChangeParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: '/organizations/:organizationId/roles',
    needs: 'owner',
    givesAccess: true,
    summary: 'Creates a role of the organization.',
    params: OrganizationId,
    body: RoleText,
    replies: { 201: Role },
    run: ({ caller, organization, body }) => createRole(parts, { caller, organizationId: organization.id }, body),
  }),
  route({
    method: 'GET',
    path: '/organizations/:organizationId/roles',
    needs: 'member',
    summary: 'Lists the global roles and the roles of the organization.',
    params: OrganizationId,
    replies: { 200: Type.Array(Role) },
    run: ({ organization }) => listRoles(parts, organization.id),
  }),
  route({
    method: 'PUT',
    path: '/organizations/:organizationId/roles/:roleId',
    needs: 'owner',
    givesAccess: true,
    summary:
      'Replaces the name, description and permissions of a role. The permissions of its members change immediately.',
    params: RoleId,
    body: RoleText,
    replies: { 200: Role },
    run: ({ caller, organization, params, body }) =>
      updateRole(parts, { caller, organizationId: organization.id }, params.roleId, body),
  }),
  route({
    method: 'DELETE',
    path: '/organizations/:organizationId/roles/:roleId',
    needs: 'owner',
    summary: 'Deletes a role of the organization and removes it from everybody who has it.',
    params: RoleId,
    replies: { 204: null },
    run: ({ caller, organization, params }) =>
      deleteRole(parts, { caller, organizationId: organization.id }, params.roleId),
  }),
]
