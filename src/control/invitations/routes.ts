// The endpoints `/organizations/{organizationId}/invitations`, and `/organizations/invitations` for invited users. The
// rules are in service.ts and answer.ts.

import Type from 'typebox'
import { OrganizationId } from '#src/control/people/schemas.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import { acceptInvitation, countOwnInvitations, declineInvitation, listOwnInvitations } from './answer.ts'
import { CreateInvitation, Invitation, InvitationId, OwnInvitationId, UpdateInvitation } from './schemas.ts'
import {
  cancelInvitation,
  createInvitation,
  type InvitationParts,
  listInvitations,
  updateInvitation,
} from './service.ts'

export const invitationRoutes = (parts: InvitationParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/organizations/invitations',
    needs: 'user',
    summary: 'Lists the invitations that the caller can still accept.',
    replies: { 200: Type.Array(Invitation) },
    run: ({ user }) => listOwnInvitations(parts, user),
  }),
  route({
    method: 'GET',
    path: '/organizations/invitations/count',
    needs: 'user',
    summary: 'Returns the number of invitations that the caller can still accept.',
    replies: { 200: Type.Integer() },
    run: ({ user }) => countOwnInvitations(parts, user),
  }),
  route({
    method: 'POST',
    path: '/organizations/invitations/:invitationId/accept',
    needs: 'user',
    givesAccess: true,
    summary: 'Accepts an invitation. The caller becomes a member of the organization.',
    params: OwnInvitationId,
    replies: { 200: Invitation },
    run: ({ caller, params }) => acceptInvitation(parts, caller, params.invitationId),
  }),
  route({
    method: 'POST',
    path: '/organizations/invitations/:invitationId/decline',
    needs: 'user',
    summary: 'Declines an invitation to the caller.',
    params: OwnInvitationId,
    replies: { 200: null },
    run: ({ caller, params }) => declineInvitation(parts, caller, params.invitationId),
  }),
  route({
    method: 'POST',
    path: '/organizations/:organizationId/invitations',
    needs: 'owner',
    givesAccess: true,
    summary: 'Invites the person with a given e-mail address to the organization, and sends a mail to that address.',
    params: OrganizationId,
    body: CreateInvitation,
    replies: { 201: Invitation },
    run: ({ caller, organization, body }) => createInvitation(parts, { caller, organization }, body),
  }),
  route({
    method: 'GET',
    path: '/organizations/:organizationId/invitations',
    needs: 'member',
    summary: 'Lists the organization’s invitations that can still be accepted.',
    params: OrganizationId,
    replies: { 200: Type.Array(Invitation) },
    run: ({ organization }) => listInvitations(parts, organization.id),
  }),
  route({
    method: 'PUT',
    path: '/organizations/:organizationId/invitations/:invitationId',
    needs: 'owner',
    givesAccess: true,
    summary: 'Replaces the role, the assigned roles and, if given, the expiry of a pending invitation.',
    params: InvitationId,
    body: UpdateInvitation,
    replies: { 200: Invitation },
    run: ({ caller, organization, params, body }) =>
      updateInvitation(parts, { caller, organization }, params.invitationId, body),
  }),
  route({
    method: 'POST',
    path: '/organizations/:organizationId/invitations/:invitationId/cancel',
    needs: 'owner',
    summary: 'Cancels a pending invitation.',
    params: InvitationId,
    replies: { 204: null },
    run: ({ caller, organization, params }) => cancelInvitation(parts, { caller, organization }, params.invitationId),
  }),
]
