// The request and reply schemas of `/volumes`, and of the volumes that a sandbox mounts.
import Type, { type Static } from 'typebox'
import { DateTime, orNull, PathText } from '#src/http/shapes.ts'
import { volumeDrivers } from '#src/wire/runner-link.ts'
import { volumeStates } from './lifecycle.ts'

export const Volume = Type.Object({
  id: Type.String(),
  name: Type.String(),
  organizationId: Type.String(),
  state: Type.Enum([...volumeStates]),
  createdAt: DateTime,
  updatedAt: DateTime,
  lastUsedAt: orNull(DateTime),
  errorReason: orNull(Type.String()),
})

export type Volume = Static<typeof Volume>

export const CreateVolume = Type.Object({ name: Type.String({ maxLength: 255 }) })

export type CreateVolume = Static<typeof CreateVolume>

export const VolumesQuery = Type.Object({ includeDeleted: Type.Boolean({ default: false }) })

export const VolumeId = Type.Object({ volumeId: PathText })
export const VolumeName = Type.Object({ volumeName: PathText })

/** A volume that a runner should remove. */
export const VolumeAssignmentShape = Type.Object({
  volumeId: Type.String(),
  driver: Type.Enum([...volumeDrivers]),
  target: Type.Literal('absent'),
})
