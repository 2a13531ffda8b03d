// The request and reply schemas of `/snapshots`. A snapshot has the field `mem` for its memory. Every other endpoint
// calls this field `memory`.
import Type, { type Static } from 'typebox'
import { DateTime, orNull, PathText } from '#src/http/shapes.ts'
import { BuildInfo, CreateBuildInfo } from '../build-info.ts'
import { snapshotStates } from './lifecycle.ts'

export const snapshotSorts = ['name', 'state', 'lastUsedAt', 'createdAt'] as const

export const Snapshot = Type.Object({
  id: Type.String(),
  organizationId: Type.Optional(Type.String()),
  general: Type.Boolean(),
  name: Type.String(),
  imageName: Type.Optional(Type.String()),
  state: Type.Enum([...snapshotStates]),
  size: orNull(Type.Number()),
  entrypoint: orNull(Type.Array(Type.String())),
  cpu: Type.Number(),
  gpu: Type.Number(),
  mem: Type.Number(),
  disk: Type.Number(),
  errorReason: orNull(Type.String()),
  createdAt: DateTime,
  updatedAt: DateTime,
  lastUsedAt: orNull(DateTime),
  sourceSandboxId: orNull(Type.String()),
  sandboxClass: Type.String(),
  buildInfo: Type.Optional(BuildInfo),
  /** Regions where sandboxes can be made from the snapshot. Absent: all regions. */
  regionIds: Type.Optional(Type.Array(Type.String())),
  /** Permanent reference of the image: a digest, or the name of an image that was made on this server. */
  ref: Type.Optional(Type.String()),
  /** How far a runner is with pulling or building the image. Absent while no runner does so. */
  progress: Type.Optional(Type.Object({ step: Type.String(), percent: Type.Number() })),
})

const Amount = Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 }))

export const CreateSnapshot = Type.Object({
  name: Type.String({ maxLength: 300 }),
  imageName: Type.Optional(Type.String({ maxLength: 1000 })),
  entrypoint: Type.Optional(Type.Array(Type.String({ maxLength: 4096, pattern: '^[^\\u0000]*$' }), { maxItems: 100 })),
  buildInfo: Type.Optional(CreateBuildInfo),
  cpu: Amount,
  gpu: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000 })),
  gpuType: Type.Optional(Type.Unknown()),
  memory: Amount,
  disk: Amount,
  regionId: Type.Optional(Type.String({ maxLength: 300 })),
  sandboxClass: Type.Optional(Type.Enum(['linux-vm', 'container', 'android', 'windows'])),
})
export type CreateSnapshot = Static<typeof CreateSnapshot>

export const SnapshotPage = Type.Object({
  items: Type.Array(Snapshot),
  total: Type.Number(),
  page: Type.Number(),
  totalPages: Type.Number(),
})

export const SnapshotsQuery = Type.Object({
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 100 })),
  name: Type.Optional(Type.String({ maxLength: 255 })),
  sourceSandboxId: Type.Optional(Type.String({ maxLength: 255 })),
  sort: Type.Optional(Type.Enum([...snapshotSorts])),
  order: Type.Optional(Type.Enum(['asc', 'desc'])),
})
export type SnapshotsQuery = Static<typeof SnapshotsQuery>

export const SnapshotIdOrName = Type.Object({ idOrName: PathText })

/** The assignment of one image. `source` is present only if the runner may have to make the image (see `wire/runner-link.ts`). */
export const ImageAssignmentShape = Type.Object({
  image: Type.String(),
  target: Type.Enum(['present', 'absent']),
  source: Type.Optional(Type.Object({ kind: Type.String() }, { additionalProperties: true })),
  maxGiB: Type.Number(),
  organizationId: Type.Optional(Type.String()),
  toStore: Type.Optional(Type.Boolean()),
  isStored: Type.Optional(Type.Boolean()),
  logins: Type.Optional(
    Type.Array(
      Type.Object({
        host: Type.String(),
        project: Type.String(),
        username: Type.String(),
        password: Type.String(),
      }),
    ),
  ),
})
