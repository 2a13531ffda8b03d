// What a gate and a runner of its host say to each other, on a unix socket that root and the gate's group can open. Each connection
// carries one request: a message of JSON, for some a body in pieces with an empty one at its end, then the answer
// (kit/length-frames.ts). Only `watch` has no end: the runner says what is here, and everything that changes.
import { type Static, Type } from 'typebox'
import { contextHash, mostParts } from './contexts.ts'
import type { Assignment } from './runner-link.ts'

/** All that a gate knows of a sandbox. */
export type KnownAssignment = Pick<
  Assignment,
  'sandboxId' | 'organizationId' | 'regionId' | 'generation' | 'snapshot' | 'user' | 'env' | 'language' | 'memoryGiB'
> &
  Partial<Pick<Assignment, 'otelEndpoint'>>

export type SandboxHere = {
  id: string
  assignment: KnownAssignment
  status: 'started' | 'paused' | 'stopped' | 'archived' | 'error'
  /** Where its agent listens. */
  socketPath: string
  /** What its image says, if that was brought. */
  config?: { env: Record<string, string>; workdir: string }
}

export type GateNews =
  | { type: 'here'; sandbox: SandboxHere }
  | { type: 'gone'; sandboxId: string }
  /** Everything that is here has been said. */
  | { type: 'whole' }

const Word = Type.String({ maxLength: 4096 })
const Words = Type.Record(Type.String(), Type.String())
const Whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** What a gate believes. It may say more than is named here: a runner can be newer than its gate. */
export const GateNewsSchema = Type.Union([
  Type.Object({ type: Type.Literal('whole') }),
  Type.Object({ type: Type.Literal('gone'), sandboxId: Word }),
  Type.Object({
    type: Type.Literal('here'),
    sandbox: Type.Object({
      id: Word,
      status: Type.Enum(['started', 'paused', 'stopped', 'archived', 'error']),
      socketPath: Word,
      assignment: Type.Object({
        sandboxId: Word,
        organizationId: Word,
        regionId: Word,
        generation: Whole,
        snapshot: Word,
        user: Word,
        env: Words,
        language: Word,
        memoryGiB: Type.Number({ minimum: 0 }),
        otelEndpoint: Type.Optional(Word),
      }),
      config: Type.Optional(Type.Object({ env: Words, workdir: Word })),
    }),
  }),
])

/** How often the kernel has killed processes of a sandbox for want of memory, and when that may have been. */
export type MemoryKillsHere = { count: number; spans: readonly { after: number; until: number }[] }

/** What the compiler said, when it has ended. */
export type Compiled = { code: number | null; javascript: string; errors: string }

const Id = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$', maxLength: 64 })
const Hash = Type.String({ pattern: contextHash.source, maxLength: 64 })
const UploadId = Type.String({ pattern: '^[0-9a-f]{32}$', maxLength: 32 })
const PartNumber = Type.Integer({ minimum: 1, maximum: mostParts })
/** Each becomes a part of a key of the store. */
const context = { organizationId: Id, hash: Hash }
const exactly = { additionalProperties: false }

export const GateRequest = Type.Union([
  Type.Object({ ask: Type.Literal('watch') }, exactly),
  Type.Object({ ask: Type.Literal('measure'), sandboxId: Id }, exactly),
  Type.Object({ ask: Type.Literal('memory-kills'), sandboxId: Id }, exactly),
  /** The body is TypeScript. */
  Type.Object(
    {
      ask: Type.Literal('compile'),
      format: Type.Union([Type.Literal('cjs'), Type.Literal('esm'), Type.Literal('files')]),
    },
    exactly,
  ),
  Type.Object({ ask: Type.Literal('type-remover') }, exactly),
  Type.Object(
    {
      ask: Type.Literal('list-contexts'),
      organizationId: Id,
      beginning: Type.String({ pattern: '^[0-9a-f]{0,64}$', maxLength: 64 }),
    },
    exactly,
  ),
  /** The body is a tar. */
  Type.Object({ ask: Type.Literal('put-context'), ...context }, exactly),
  Type.Object({ ask: Type.Literal('begin-upload'), ...context }, exactly),
  /** The body is a part of a tar. */
  Type.Object({ ask: Type.Literal('put-part'), ...context, uploadId: UploadId, part: PartNumber }, exactly),
  Type.Object(
    {
      ask: Type.Literal('complete-upload'),
      ...context,
      uploadId: UploadId,
      parts: Type.Array(Type.Object({ number: PartNumber, etag: Type.String({ maxLength: 128 }) }, exactly), {
        maxItems: mostParts,
      }),
    },
    exactly,
  ),
  Type.Object({ ask: Type.Literal('abort-upload'), ...context, uploadId: UploadId }, exactly),
])
export type GateRequest = Static<typeof GateRequest>

/** `refused`: a problem by its code, with a sentence for the caller. */
export type GateAnswer = { value: unknown } | { refused: { code: string; message: string } }

/** How long a request, and each piece of a body, may be: a runner holds one for each connection of its gates. */
export const requestBytes = 256 * 1024
/** How long an answer may be. What a compiler has written is the longest. */
export const answerBytes = 160 * 1024 * 1024
