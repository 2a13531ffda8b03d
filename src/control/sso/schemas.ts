// The request and reply schemas of single sign-on.
import Type from 'typebox'
import { DateTime, orNull, PathText } from '#src/http/shapes.ts'

export const BeginQuery = Type.Object({
  /** Id of one of the organization's enabled identity providers. Default: the oldest enabled provider. */
  identityProviderId: Type.Optional(Type.String({ maxLength: 255 })),
})

/** The query of the callback. The identity provider adds further parameters, such as `code`, which openid-client reads. */
export const CallbackQuery = Type.Object({ state: Type.Optional(Type.String({ maxLength: 512 })) })

export const SessionView = Type.Object({
  accessToken: Type.String(),
  tokenType: Type.Literal('Bearer'),
  expiresAt: DateTime,
  userId: Type.String(),
  organizationId: Type.String(),
})

export const PendingLink = Type.Object({
  id: Type.String(),
  idpName: Type.String(),
  organizationId: Type.String(),
  providerEmail: orNull(Type.String()),
  createdAt: DateTime,
  expiresAt: DateTime,
})

export const LinkId = Type.Object({ id: PathText })
