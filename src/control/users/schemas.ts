// The request and reply schemas of `/users`.
import Type from 'typebox'
import { DateTime, PathText } from '#src/http/shapes.ts'

export const User = Type.Object({
  id: Type.String(),
  name: Type.String(),
  email: Type.String(),
  emailVerified: Type.Boolean(),
  publicKeys: Type.Array(Type.Object({ key: Type.String(), name: Type.String() })),
  createdAt: DateTime,
})

export const AccountProvider = Type.Object({
  name: Type.String(),
  displayName: Type.String(),
  provider: Type.String(),
  linked: Type.Boolean(),
})

const Word = Type.String({ minLength: 1, maxLength: 255 })

export const CreateLinkedAccount = Type.Object({ provider: Word, userId: Word })
export const LinkedAccount = Type.Object({ provider: PathText, providerUserId: PathText })
