// The request and reply schemas of roles.
import Type, { type Static } from 'typebox'
import { DateTime, PathText } from '#src/http/shapes.ts'
import { allPermissions } from '../auth/permissions.ts'

/** The body of a create or an update. An update replaces all fields. */
export const RoleText = Type.Object({
  name: Type.String({ maxLength: 1024 }),
  description: Type.String({ maxLength: 1024 }),
  permissions: Type.Array(Type.Enum(allPermissions), { minItems: 1, maxItems: 100 }),
})
export type RoleText = Static<typeof RoleText>

export const Role = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  permissions: Type.Array(Type.Enum(allPermissions)),
  isGlobal: Type.Boolean(),
  createdAt: DateTime,
  updatedAt: DateTime,
})

export const RoleId = Type.Object({ organizationId: PathText, roleId: PathText })
