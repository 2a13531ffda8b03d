// The shapes of `/regions` (contract/control-plane.md §8).
import Type from 'typebox'

const textOrNull = Type.Union([Type.String(), Type.Null()])

export const Region = Type.Object({
  id: Type.String(),
  name: Type.String(),
  organizationId: textOrNull,
  regionType: Type.Enum(['shared', 'dedicated', 'custom']),
  createdAt: Type.String({ format: 'date-time' }),
  updatedAt: Type.String({ format: 'date-time' }),
  proxyUrl: textOrNull,
  sshGatewayUrl: textOrNull,
  snapshotManagerUrl: textOrNull,
  otelEndpoint: textOrNull,
})

export const RegionId = Type.Object({ id: Type.String() })

const address = Type.Optional(Type.Union([Type.String({ maxLength: 2048 }), Type.Null()]))

export const UpdateRegion = Type.Object({
  proxyUrl: address,
  sshGatewayUrl: address,
  snapshotManagerUrl: address,
  otelEndpoint: address,
})

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
