// The request and reply schemas of `/docker-registry`.
import Type, { type Static } from 'typebox'
import { DateTime, optional, PathText } from '#src/http/shapes.ts'

const Name = Type.String({ maxLength: 1000 })
const Url = Type.String({ minLength: 1, maxLength: 512 })
const Username = Type.String({ minLength: 1, maxLength: 255 })
/** Some registries use a JSON key of several KiB, or a token, as the password. */
const Password = Type.String({ minLength: 1, maxLength: 16_384 })
const Project = Type.String({ maxLength: 255 })

export const CreateRegistry = Type.Object({
  name: Name,
  url: Url,
  username: Username,
  password: Password,
  project: optional(Project),
})
export type CreateRegistry = Static<typeof CreateRegistry>

/** The body of an update: any subset of the fields. */
export const UpdateRegistry = Type.Object({
  name: optional(Name),
  url: optional(Url),
  username: optional(Username),
  password: optional(Password),
  project: optional(Project),
})
export type UpdateRegistry = Static<typeof UpdateRegistry>

/** An image registry in replies. The password can be set but is never returned. */
export const RegistryView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  url: Type.String(),
  username: Type.String(),
  project: Type.String(),
  registryType: Type.Literal('organization'),
  createdAt: DateTime,
  updatedAt: DateTime,
})

export const RegistryId = Type.Object({ id: PathText })
