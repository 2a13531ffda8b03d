// The request and reply schemas of identity providers.
import Type, { type Static } from 'typebox'
import { DateTime, PathText } from '#src/http/shapes.ts'

const IssuerUrl = Type.String({ minLength: 1, maxLength: 2048 })
const ClientId = Type.String({ minLength: 1, maxLength: 512 })
const ClientSecret = Type.String({ minLength: 1, maxLength: 2048 })
const Scope = Type.String({ minLength: 1, maxLength: 1024 })

const policy = {
  emailDomains: Type.Optional(Type.Array(Type.String({ maxLength: 320 }), { maxItems: 100 })),
  allowAnyDomain: Type.Optional(Type.Boolean()),
  trustEmailVerified: Type.Optional(Type.Boolean()),
  defaultAssignedRoleIds: Type.Optional(Type.Array(Type.String({ maxLength: 255 }), { maxItems: 100 })),
  enabled: Type.Optional(Type.Boolean()),
}

const Name = Type.String({ maxLength: 1000 })

export const CreateIdentityProvider = Type.Object({
  name: Name,
  oidcConfig: Type.Object({
    issuerUrl: IssuerUrl,
    clientId: ClientId,
    clientSecret: ClientSecret,
    scope: Type.Optional(Scope),
  }),
  ...policy,
})
export type CreateIdentityProvider = Static<typeof CreateIdentityProvider>

/** The body of an update of an identity provider. Every field may be left out, also those inside `oidcConfig`. */
export const UpdateIdentityProvider = Type.Object({
  name: Type.Optional(Name),
  oidcConfig: Type.Optional(
    Type.Object({
      issuerUrl: Type.Optional(IssuerUrl),
      clientId: Type.Optional(ClientId),
      clientSecret: Type.Optional(ClientSecret),
      scope: Type.Optional(Scope),
    }),
  ),
  ...policy,
})
export type UpdateIdentityProvider = Static<typeof UpdateIdentityProvider>

/** An identity provider in replies. The client secret can be set but is never returned. */
export const IdentityProviderView = Type.Object({
  id: Type.String(),
  organizationId: Type.String(),
  name: Type.String(),
  oidcConfig: Type.Object({ issuerUrl: Type.String(), clientId: Type.String(), scope: Type.String() }),
  emailDomains: Type.Array(Type.String()),
  allowAnyDomain: Type.Boolean(),
  trustEmailVerified: Type.Boolean(),
  defaultAssignedRoleIds: Type.Array(Type.String()),
  enabled: Type.Boolean(),
  createdAt: DateTime,
  updatedAt: DateTime,
})

export const TestConnection = Type.Object({ issuerUrl: IssuerUrl })

/** The result of a connection test. If the provider fails the test, `success` is false; the call itself answers 200. */
export const TestConnectionResult = Type.Object({
  success: Type.Boolean(),
  issuer: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
})

export const ProviderTemplate = Type.Object({
  id: Type.String(),
  name: Type.String(),
  /** The URL of the issuer. Users replace each word in braces by a value of their own; `placeholders` explains the words. */
  issuerUrl: Type.String(),
  placeholders: Type.Record(Type.String(), Type.String()),
  scope: Type.String(),
  trustEmailVerified: Type.Boolean(),
  notes: Type.String(),
})

export const ProviderId = Type.Object({ organizationId: PathText, id: PathText })
