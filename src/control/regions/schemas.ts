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
