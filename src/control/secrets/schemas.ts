// The request and reply schemas of `/secret`, and of the list that runners read.
import Type, { type Static } from 'typebox'
import { DateTime, optional, orNull, PathText } from '#src/http/shapes.ts'
import { longestValue, mostHosts } from '#src/wire/secrets.ts'

const Name = Type.String({ minLength: 1, maxLength: 128 })
const Value = Type.String({ minLength: 1, maxLength: longestValue })
const Description = Type.String({ maxLength: 1000 })
const Hosts = Type.Array(Type.String({ maxLength: 1000 }), { maxItems: mostHosts })

export const CreateSecret = Type.Object({
  name: Name,
  value: Value,
  description: optional(Description),
  hosts: optional(Hosts),
})
export type CreateSecret = Static<typeof CreateSecret>

/** The body of an update: any subset of the fields. */
export const UpdateSecret = Type.Object({
  value: optional(Value),
  description: optional(Description),
  hosts: optional(Hosts),
})
export type UpdateSecret = Static<typeof UpdateSecret>

/** A secret in replies. The value can be set but is never returned. */
export const SecretView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.Optional(Type.String()),
  placeholder: Type.String(),
  hosts: Type.Array(Type.String()),
  createdAt: DateTime,
  updatedAt: DateTime,
})
export type SecretView = Static<typeof SecretView>

export const SecretId = Type.Object({ secretId: PathText })

export const secretSorts = ['name', 'createdAt', 'updatedAt'] as const

export const SecretsQuery = Type.Object({
  cursor: Type.Optional(Type.String({ maxLength: 2048 })),
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 100 }),
  name: Type.Optional(Type.String({ maxLength: 128 })),
  sort: Type.Enum([...secretSorts], { default: 'createdAt' }),
  order: Type.Enum(['asc', 'desc'], { default: 'desc' }),
})
export type SecretsQuery = Static<typeof SecretsQuery>

export const SecretsPage = Type.Object({
  items: Type.Array(SecretView),
  total: Type.Integer(),
  nextCursor: orNull(Type.String()),
})
export type SecretsPage = Static<typeof SecretsPage>

/** The list of secrets that runners request. The runners check every field themselves (wire/secrets.ts). */
export const SecretsOfRunnerShape = Type.Object({
  secrets: Type.Array(
    Type.Object({
      ...{ id: Type.String(), version: Type.Integer(), placeholder: Type.String(), value: Type.String() },
      ...{ hosts: Type.Array(Type.String()), certificate: Type.String(), privateKey: Type.String() },
    }),
  ),
  sandboxes: Type.Array(
    Type.Object({ sandboxId: Type.String(), generation: Type.Integer(), secretIds: Type.Array(Type.String()) }),
  ),
})
