// Messages between a gate and a runner of one host, on a unix socket that only root and the gate's group can open. Each connection
// carries one request and its answer (kit/length-frames.ts). After some requests a body follows, as frames with an empty frame at
// the end. The answer to `watch` never ends: first all sandboxes, then every change.
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
  /** Settings from the sandbox's image, if the runner knows these settings. Present only for started and paused sandboxes. */
  config?: { env: Record<string, string>; workdir: string }
}

export type GateNews =
  | { type: 'here'; sandbox: SandboxHere }
  | { type: 'gone'; sandboxId: string }
  /** Tells the gate that the runner has now sent all of its sandboxes. Each later message is about a change. */
  | { type: 'whole' }

const Word = Type.String({ maxLength: 4096 })
const Words = Type.Record(Type.String(), Type.String())
const Whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** The messages of a runner, with the fields that a gate reads. More fields are allowed, because the runner may be newer. */
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

/**
 * `count`: how many processes the kernel has killed for lack of memory. `spans`: time spans, in ms since 1970, in each of which at
 * least one process was killed.
 */
export type MemoryKillsHere = { count: number; spans: readonly { after: number; until: number }[] }

/** The exit code of the TypeScript compiler, and what the compiler printed. */
export type Compiled = { code: number | null; javascript: string; errors: string }

const Id = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$', maxLength: 64 })
const Hash = Type.String({ pattern: contextHash.source, maxLength: 64 })
const UploadId = Type.String({ pattern: '^[0-9a-f]{32}$', maxLength: 32 })
const PartNumber = Type.Integer({ minimum: 1, maximum: mostParts })
/** The organization and the hash of a context. They become parts of the context's key in the object store. */
const context = { organizationId: Id, hash: Hash }
const exactly = { additionalProperties: false }

export const GateRequest = Type.Union([
  Type.Object({ ask: Type.Literal('watch') }, exactly),
  Type.Object({ ask: Type.Literal('measure'), sandboxId: Id }, exactly),
  Type.Object({ ask: Type.Literal('memory-kills'), sandboxId: Id }, exactly),
  /** Asks the runner to compile the request's body, which is TypeScript, to JavaScript. */
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
  /** Asks the runner to store the request's body, which is a context: a tar. */
  Type.Object({ ask: Type.Literal('put-context'), ...context }, exactly),
  Type.Object({ ask: Type.Literal('begin-upload'), ...context }, exactly),
  /** Asks the runner to store the request's body, which is one part of a context's tar. */
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

/**
 * `refused`: the runner refuses the request, with the code of a problem (src/problems.ts) and a sentence for the
 * caller.
 */
export type GateAnswer = { value: unknown } | { refused: { code: string; message: string } }

/** Maximum bytes of a request, and of each frame of its body. A runner may hold this many bytes for each connection. */
export const requestBytes = 256 * 1024
/** Maximum bytes of a runner's answer. The longest answer is of type `Compiled`: JavaScript from a caller's TypeScript. */
export const answerBytes = 160 * 1024 * 1024
