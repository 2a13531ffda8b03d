// Messages between a gate and a runner of the same host, on a unix socket that only root and the gate's group can open.
// Each connection carries one request and its answer (kit/length-frames.ts). A request is a JSON message. Some requests
// then have a body in frames, which ends with an empty frame. Only the answer to `watch` never ends: the runner sends
// all sandboxes, and then every change.
import { type Static, Type } from 'typebox'
import { contextHash, mostParts } from './contexts.ts'
import type { Assignment } from './runner-link.ts'

/** The parts of a sandbox's assignment that a gate knows. */
export type KnownAssignment = Pick<
  Assignment,
  'sandboxId' | 'organizationId' | 'regionId' | 'generation' | 'snapshot' | 'user' | 'env' | 'language' | 'memoryGiB'
> &
  Partial<Pick<Assignment, 'otelEndpoint' | 'unsetEnv'>>

export type SandboxHere = {
  id: string
  assignment: KnownAssignment
  status: 'started' | 'paused' | 'stopped' | 'archived' | 'error'
  /** The socket on which the sandbox's agent listens. */
  socketPath: string
  /** Settings from the sandbox's image. Absent if the image was not pulled. */
  config?: { env: Record<string, string>; workdir: string }
}

export type GateNews =
  | { type: 'here'; sandbox: SandboxHere }
  | { type: 'gone'; sandboxId: string }
  /** Says that the runner has sent all sandboxes. All later messages are changes. */
  | { type: 'whole' }

const Word = Type.String({ maxLength: 4096 })
const Words = Type.Record(Type.String(), Type.String())
const Whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/**
 * The messages from a runner, with only the fields that a gate reads. Unknown fields are allowed, because a runner may
 * be newer than its gate.
 */
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
        unsetEnv: Type.Optional(Type.Array(Type.String())),
      }),
      config: Type.Optional(Type.Object({ env: Words, workdir: Word })),
    }),
  }),
])

/** How many processes of a sandbox the kernel has killed for lack of memory, and the possible times of these kills. */
export type MemoryKillsHere = { count: number; spans: readonly { after: number; until: number }[] }

/** The result of the compiler, and what it printed. */
export type Compiled = { code: number | null; javascript: string; errors: string }

const Id = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$', maxLength: 64 })
const Hash = Type.String({ pattern: contextHash.source, maxLength: 64 })
const UploadId = Type.String({ pattern: '^[0-9a-f]{32}$', maxLength: 32 })
const PartNumber = Type.Integer({ minimum: 1, maximum: mostParts })
/** Organization and hash. Both values become parts of a key in the object store. */
const context = { organizationId: Id, hash: Hash }
const exactly = { additionalProperties: false }

export const GateRequest = Type.Union([
  Type.Object({ ask: Type.Literal('watch') }, exactly),
  Type.Object({ ask: Type.Literal('measure'), sandboxId: Id }, exactly),
  Type.Object({ ask: Type.Literal('memory-kills'), sandboxId: Id }, exactly),
  /** Compiles the request's body, which is TypeScript. */
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
  /** Stores the request's body, which is a tar. */
  Type.Object({ ask: Type.Literal('put-context'), ...context }, exactly),
  Type.Object({ ask: Type.Literal('begin-upload'), ...context }, exactly),
  /** Stores the request's body, which is a part of a tar. */
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

/** `refused`: a problem code with a sentence for the caller. */
export type GateAnswer = { value: unknown } | { refused: { code: string; message: string } }

/**
 * Most bytes of a request and of each frame of a body. A runner may hold this many bytes for each connection of its
 * gates.
 */
export const requestBytes = 256 * 1024
/** Most bytes of an answer. The longest answer is the output of the compiler. */
export const answerBytes = 160 * 1024 * 1024
