// The request and reply schemas of members.
import Type, { type Static } from 'typebox'
import { DateTime, PathText } from '#src/http/shapes.ts'
import { Role } from '../roles/schemas.ts'

export const MemberRole = Type.Enum(['owner', 'member'])
export const RoleIds = Type.Array(Type.String({ maxLength: 255 }), { maxItems: 250 })

export const MemberAccess = Type.Object({ role: MemberRole, assignedRoleIds: RoleIds })
export type MemberAccess = Static<typeof MemberAccess>

export const Member = Type.Object({
  userId: Type.String(),
  organizationId: Type.String(),
  name: Type.String(),
  email: Type.String(),
  role: MemberRole,
  assignedRoles: Type.Array(Role),
  createdAt: DateTime,
  updatedAt: DateTime,
})

export const MemberId = Type.Object({ organizationId: PathText, userId: PathText })
