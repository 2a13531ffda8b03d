// The request and reply schemas of `/api-keys`.
import Type, { type Static } from 'typebox'
import { DateTime, optional, orNull, PathText } from '#src/http/shapes.ts'
import { allPermissions } from '../auth/permissions.ts'

const Permissions = Type.Array(Type.Enum(allPermissions), { maxItems: 100 })

export const CreateApiKey = Type.Object({
  name: Type.String({ maxLength: 1024 }),
  permissions: Permissions,
  expiresAt: optional(Type.String({ format: 'date-time', maxLength: 64 })),
})
export type CreateApiKey = Static<typeof CreateApiKey>

/** A new API key with its whole secret. No other answer contains a whole key. */
export const NewApiKey = Type.Object({
  name: Type.String(),
  value: Type.String(),
  createdAt: DateTime,
  permissions: Permissions,
  expiresAt: orNull(DateTime),
})

export const ApiKey = Type.Object({
  ...NewApiKey.properties,
  lastUsedAt: orNull(DateTime),
  userId: Type.String(),
})

export const KeyName = Type.Object({ name: PathText })
export const UserKeyName = Type.Object({ userId: PathText, name: PathText })
