// The request and reply schemas of invitations.
import Type, { type Static } from 'typebox'
import { DateTime, optional, PathText } from '#src/http/shapes.ts'
import { MemberRole, RoleIds } from '../members/schemas.ts'
import { Role } from '../roles/schemas.ts'

const Expiry = optional(Type.String({ format: 'date-time', maxLength: 64 }))

export const CreateInvitation = Type.Object({
  email: Type.String({ maxLength: 320 }),
  role: Type.Optional(MemberRole),
  assignedRoleIds: Type.Optional(RoleIds),
  expiresAt: Expiry,
})
export type CreateInvitation = Static<typeof CreateInvitation>

export const UpdateInvitation = Type.Object({ role: MemberRole, assignedRoleIds: RoleIds, expiresAt: Expiry })
export type UpdateInvitation = Static<typeof UpdateInvitation>

export const Invitation = Type.Object({
  id: Type.String(),
  email: Type.String(),
  invitedBy: Type.String(),
  organizationId: Type.String(),
  organizationName: Type.String(),
  expiresAt: DateTime,
  status: Type.Enum(['pending', 'accepted', 'declined', 'cancelled']),
  role: MemberRole,
  assignedRoles: Type.Array(Role),
  createdAt: DateTime,
  updatedAt: DateTime,
})

export const OwnInvitationId = Type.Object({ invitationId: PathText })
export const InvitationId = Type.Object({ organizationId: PathText, invitationId: PathText })
