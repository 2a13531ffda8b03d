// The shapes of `/api-keys` (contract/control-plane.md §5).
import Type, { type Static } from 'typebox'
import { allPermissions } from '../auth/permissions.ts'

const Permissions = Type.Array(Type.Enum(allPermissions), { maxItems: 100 })

export const CreateApiKey = Type.Object({
  name: Type.String({ maxLength: 1024 }),
  permissions: Permissions,
  expiresAt: Type.Optional(Type.Union([Type.String({ format: 'date-time', maxLength: 64 }), Type.Null()])),
})
export type CreateApiKey = Static<typeof CreateApiKey>

/** The only answer that ever holds a whole key. */
export const NewApiKey = Type.Object({
  name: Type.String(),
  value: Type.String(),
  createdAt: Type.String({ format: 'date-time' }),
  permissions: Permissions,
  expiresAt: Type.Union([Type.String({ format: 'date-time' }), Type.Null()]),
})

export const ApiKey = Type.Object({
  ...NewApiKey.properties,
  lastUsedAt: Type.Union([Type.String({ format: 'date-time' }), Type.Null()]),
  userId: Type.String(),
})

export const KeyName = Type.Object({ name: Type.String() })
export const UserKeyName = Type.Object({ userId: Type.String(), name: Type.String() })
