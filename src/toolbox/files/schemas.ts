// Requests and answers of the file endpoints.
import Type from 'typebox'
import { LongText, longestText } from '#src/http/shapes.ts'

/**
 * Maximum length of a path. It exceeds the kernel's limit, so the kernel refuses a long path itself. In a list of paths, the other
 * paths then still work.
 */
const longestPath = 16_384

/** Path of a file: absolute, or relative to the user's home. */
const Path = Type.String({ minLength: 1, maxLength: longestPath })

/** Mode of a file, for example `755`, `0644`, `4755`. */
const Mode = Type.String({ pattern: '^0?[0-7]{3,4}$', description: 'an octal mode such as 644 or 0755', maxLength: 5 })

export const modeOf = (mode: string | undefined) => (mode === undefined ? {} : { mode: Number.parseInt(mode, 8) })

export const FileInfo = Type.Object({
  name: Type.String(),
  path: Type.String(),
  isDir: Type.Boolean(),
  size: Type.Number(),
  mode: Type.String(),
  modTime: Type.String(),
  modifiedAt: Type.String(),
  owner: Type.String(),
  group: Type.String(),
  permissions: Type.String(),
})
export type FileInfo = Type.Static<typeof FileInfo>

export const UploadedFile = Type.Object({
  name: Type.String(),
  path: Type.String({ description: 'Path of the file, as the request gave it.' }),
  type: Type.Literal('file'),
})

export const AtPath = Type.Object({ path: Path })

export const ListQuery = Type.Object({
  path: Type.Optional(Type.String({ maxLength: longestPath })),
  depth: Type.Optional(Type.Integer({ minimum: 1 })),
})

/** Query of a search for lines. The pattern must not have a line break, because no line contains one. */
export const FindQuery = Type.Object({
  path: Path,
  pattern: Type.String({ pattern: '^[^\\n]+$', description: 'one line that is not empty', maxLength: 65_536 }),
})

export const Match = Type.Object({ file: Type.String(), line: Type.Integer(), content: Type.String() })
export type Match = Type.Static<typeof Match>

export const SearchQuery = Type.Object({ path: Path, pattern: Type.String({ minLength: 1, maxLength: 4096 }) })

export const SearchFilesResponse = Type.Object({ files: Type.Array(Type.String()) })
export type SearchFilesResponse = Type.Static<typeof SearchFilesResponse>

export const FolderQuery = Type.Object({ path: Path, mode: Type.Optional(Mode) })

export const MoveQuery = Type.Object({ source: Path, destination: Path })

export const PermissionsQuery = Type.Object({
  path: Path,
  owner: Type.Optional(Type.String({ maxLength: 255 })),
  group: Type.Optional(Type.String({ maxLength: 255 })),
  mode: Type.Optional(Mode),
})

export const DeleteQuery = Type.Object({ path: Path, recursive: Type.Optional(Type.Boolean()) })

export const ReplaceRequest = Type.Object({
  files: Type.Array(Path, { minItems: 1, maxItems: 1000 }),
  pattern: Type.String({ minLength: 1, maxLength: longestText }),
  newValue: LongText,
})
export type ReplaceRequest = Type.Static<typeof ReplaceRequest>

export const ReplaceResult = Type.Object({
  file: Type.String(),
  success: Type.Boolean(),
  error: Type.Optional(Type.String()),
})
export type ReplaceResult = Type.Static<typeof ReplaceResult>

export const BulkDownloadRequest = Type.Object({ paths: Type.Array(Path, { minItems: 1, maxItems: 1000 }) })
