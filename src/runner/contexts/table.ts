// The table lists the chunks of a context, or of a part of an upload. The table is validated like input of a caller.
import Type from 'typebox'
import { Compile } from 'typebox/compile'
import { maxChunkBytes } from '../archive/chunk-borders.ts'
import type { Chunk } from '../archive/manifest.ts'

export const largestTable = 4 * 1024 * 1024

export type Part = { bytes: number; etag: string; chunks: readonly Chunk[] }

export type Table = Part & {
  storedAt: number
  /** When a caller last requested the context, accurate to about an hour. */
  seenAt: number
}

const count = Type.Integer({ minimum: 0 })
const partFields = {
  bytes: count,
  etag: Type.String({ pattern: '^[0-9a-f]{32}$' }),
  chunks: Type.Array(
    Type.Object({
      sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
      bytes: Type.Integer({ minimum: 1, maximum: maxChunkBytes }),
      storedBytes: count,
    }),
  ),
}
const PartShape = Compile(Type.Object(partFields))
const TableShape = Compile(Type.Object({ ...partFields, storedAt: count, seenAt: count }))
const MomentShape = Compile(Type.Object({ at: count }))

const parsed = (content: Buffer): unknown => {
  try {
    return JSON.parse(content.toString())
  } catch {
    return undefined
  }
}

export const written = (value: Part | Table | { at: number }): Buffer => Buffer.from(JSON.stringify(value))

const reader =
  <T>({ Check }: { Check: (value: unknown) => boolean }) =>
  (content: Buffer | undefined): T | undefined => {
    const value = content && parsed(content)
    return Check(value) ? (value as T) : undefined
  }

export const readPart = reader<Part>({ Check: (value) => PartShape.Check(value) })
export const readTable = reader<Table>({ Check: (value) => TableShape.Check(value) })
export const readMoment = reader<{ at: number }>({ Check: (value) => MomentShape.Check(value) })
