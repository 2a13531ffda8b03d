// The schemas of an image definition in requests and replies: its Dockerfile and the hashes of its files.
import Type, { type Static } from 'typebox'
import { DateTime } from '#src/http/shapes.ts'

export const BuildInfo = Type.Object({
  dockerfileContent: Type.String(),
  /** Hashes of the files that belong to the Dockerfile (COPY). Absent if there are no such files. */
  contextHashes: Type.Optional(Type.Array(Type.String())),
  createdAt: DateTime,
  updatedAt: DateTime,
  snapshotRef: Type.String(),
})

export const CreateBuildInfo = Type.Object({
  dockerfileContent: Type.String({ minLength: 1, maxLength: 256 * 1024, pattern: '^[^\\u0000]*$' }),
  contextHashes: Type.Optional(Type.Array(Type.String({ maxLength: 200 }), { maxItems: 100 })),
})
export type CreateBuildInfo = Static<typeof CreateBuildInfo>
