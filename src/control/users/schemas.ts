// The shapes of `/users` (contract/control-plane.md §10).
import Type from 'typebox'

export const User = Type.Object({
  id: Type.String(),
  name: Type.String(),
  email: Type.String(),
  emailVerified: Type.Boolean(),
  publicKeys: Type.Array(Type.Object({ key: Type.String(), name: Type.String() })),
  createdAt: Type.String({ format: 'date-time' }),
})
