// The request and reply schemas of `/regions`.
import Type from 'typebox'
import { DateTime, optional, orNull, PathText } from '#src/http/shapes.ts'

const textOrNull = orNull(Type.String())

export const Region = Type.Object({
  id: Type.String(),
  name: Type.String(),
  organizationId: textOrNull,
  regionType: Type.Enum(['shared', 'dedicated', 'custom']),
  createdAt: DateTime,
  updatedAt: DateTime,
  proxyUrl: textOrNull,
  sshGatewayUrl: textOrNull,
  snapshotManagerUrl: textOrNull,
  otelEndpoint: textOrNull,
  savesStopped: Type.Boolean(),
})

export const RegionId = Type.Object({ id: PathText })

const address = optional(Type.String({ maxLength: 2048 }))

export const UpdateRegion = Type.Object({
  proxyUrl: address,
  sshGatewayUrl: address,
  snapshotManagerUrl: address,
  otelEndpoint: address,
})

export const UpdateSharedRegion = Type.Object({ savesStopped: Type.Boolean() })

export const CreateRegion = Type.Object({
  name: Type.String({ minLength: 2, maxLength: 255 }),
  ...UpdateRegion.properties,
})

export const NewRegion = Type.Object({
  id: Type.String(),
  proxyApiKey: textOrNull,
  sshGatewayApiKey: textOrNull,
  snapshotManagerUsername: textOrNull,
  snapshotManagerPassword: textOrNull,
})

export const NewKey = Type.Object({ apiKey: Type.String() })
export const SnapshotManagerCredentials = Type.Object({ username: Type.String(), password: Type.String() })
