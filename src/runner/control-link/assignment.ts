// Checks control's messages, so that a faulty control cannot make the runner do anything outside of the protocol.
import Type from 'typebox'
import { Compile } from 'typebox/compile'
import type { TracePlace } from '#src/kit/telemetry/telemetry.ts'
import { type ContextsInUse, contextHash } from '#src/wire/contexts.ts'
import {
  type Assignment,
  type ImageAssignment,
  imageConfigBounds,
  mostVolumes,
  type VolumeAssignment,
  volumeDrivers,
} from '#src/wire/runner-link.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import { longestValue, mostHosts, type SecretsOfRunner } from '#src/wire/secrets.ts'

const { words, wordCharacters, nameCharacters, pathCharacters } = imageConfigBounds

const name = Type.String({ maxLength: nameCharacters })
const sha256 = Type.String({ pattern: '^[0-9a-f]{64}$', maxLength: 64 })
const amount = Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 })

/** Shape of an id. An id of this shape is safe as a part of a path. */
const id = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$', maxLength: 64 })

/**
 * Maximum number of variables or labels of a sandbox. No version of control accepts so many. A sandbox keeps the variables that
 * an older version accepted, so this must not be the limit of today's version.
 */
const mostValues = 100_000
const value = Type.String({ maxLength: 1024 * 1024 })

const Assigned = Type.Object({
  sandboxId: id,
  organizationId: name,
  regionId: name,
  name,
  generation: Type.Integer({ minimum: 0 }),
  target: Type.Enum(['started', 'stopped', 'paused', 'archived', 'destroyed']),
  signal: Type.Enum(['SIGTERM', 'SIGKILL']),
  image: name,
  snapshot: name,
  user: name,
  env: Type.Record(Type.String(), value, { maxProperties: mostValues, propertyNames: { maxLength: 1024 * 1024 } }),
  unsetEnv: Type.Optional(Type.Array(Type.String({ maxLength: wordCharacters }), { maxItems: mostValues })),
  entrypoint: Type.Optional(Type.Array(Type.String({ maxLength: wordCharacters }), { maxItems: words })),
  language: name,
  cpu: amount,
  memoryGiB: amount,
  diskGiB: amount,
  network: Type.Object({
    blockAll: Type.Boolean(),
    allowList: Type.Union([Type.Null(), Type.Array(Type.String({ maxLength: 64 }), { maxItems: 1024 })]),
    domains: Type.Optional(Type.Union([Type.Null(), Type.Array(Type.String({ maxLength: 255 }), { maxItems: 1024 })])),
    hasSecrets: Type.Optional(Type.Boolean()),
  }),
  authority: Type.Optional(Type.String({ maxLength: 16 * 1024 })),
  otelEndpoint: Type.Optional(Type.String({ maxLength: 2048 })),
  isNew: Type.Optional(Type.Boolean()),
  isRunning: Type.Optional(Type.Boolean()),
  isWarm: Type.Optional(Type.Boolean()),
  volumes: Type.Optional(
    Type.Array(
      Type.Object({
        volumeId: id,
        driver: Type.Enum([...volumeDrivers]),
        sizeGiB: amount,
        mountPath: Type.String({ pattern: '^(/(?!\\.{1,2}(/|$))[^/\\u0000]+)+$', maxLength: pathCharacters }),
        subpath: Type.Optional(
          Type.String({
            pattern: '^(?!\\.{1,2}(/|$))[^/\\u0000]+(/(?!\\.{1,2}(/|$))[^/\\u0000]+)*$',
            maxLength: pathCharacters,
          }),
        ),
        isNew: Type.Optional(Type.Boolean()),
      }),
      { maxItems: mostVolumes },
    ),
  ),
  forkOf: Type.Optional(id),
  archive: Type.Optional(Type.Object({ id, sha256: Type.Optional(sha256) })),
  save: Type.Optional(Type.Object({ id })),
})

const AssignmentShape = Compile(Assigned)

export const isAssignment = (value: unknown): value is Assignment => AssignmentShape.Check(value)

const kind = <const Kind extends string>(value: Kind) => Type.Literal(value)

const ImageSourceShape = Type.Union([
  Type.Object({ kind: kind('registry'), reference: name }),
  Type.Object({ kind: kind('file'), path: Type.String({ maxLength: pathCharacters }) }),
  Type.Object({
    kind: kind('definition'),
    dockerfile: Type.String({ maxLength: 1024 * 1024 }),
    contexts: Type.Optional(
      Type.Object({
        organizationId: id,
        hashes: Type.Array(Type.String({ pattern: contextHash.source, maxLength: 64 }), { maxItems: mostValues }),
      }),
    ),
    snapshots: Type.Optional(
      Type.Record(Type.String(), name, { maxProperties: mostValues, propertyNames: { maxLength: nameCharacters } }),
    ),
  }),
  Type.Object({ kind: kind('sandbox'), sandboxId: id, isMade: Type.Optional(Type.Boolean()) }),
  Type.Object({ kind: kind('store'), sha256, base: name }),
])

const AssignedImage = Type.Object({
  image: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$', maxLength: 128 }),
  target: Type.Enum(['present', 'absent']),
  source: Type.Optional(ImageSourceShape),
  maxGiB: amount,
  organizationId: Type.Optional(id),
  logins: Type.Optional(
    Type.Array(
      Type.Object({ host: name, project: name, username: name, password: Type.String({ maxLength: 64 * 1024 }) }),
      { maxItems: 1024 },
    ),
  ),
  toStore: Type.Optional(Type.Boolean()),
  isStored: Type.Optional(Type.Boolean()),
})

const ImageAssignmentShape = Compile(AssignedImage)

export const isImageAssignment = (value: unknown): value is ImageAssignment => ImageAssignmentShape.Check(value)

const AssignedRemoval = Type.Object({
  volumeId: id,
  driver: Type.Enum([...volumeDrivers]),
  target: Type.Literal('absent'),
})

const VolumeAssignmentShape = Compile(AssignedRemoval)

export const isVolumeAssignment = (value: unknown): value is VolumeAssignment => VolumeAssignmentShape.Check(value)

const pem = Type.String({ maxLength: 64 * 1024 })

const ToldSecrets = Type.Object({
  secrets: Type.Array(
    Type.Object({
      id,
      version: Type.Integer({ minimum: 0 }),
      placeholder: Type.String({ pattern: '^[A-Za-z0-9_]{16,128}$', maxLength: 128 }),
      value: Type.String({ pattern: '^[\\x20-\\x7e]*$', maxLength: longestValue }),
      hosts: Type.Array(Type.String({ maxLength: 255 }), { maxItems: mostHosts }),
      certificate: pem,
      privateKey: pem,
    }),
    { maxItems: mostValues },
  ),
  sandboxes: Type.Array(
    Type.Object({
      sandboxId: id,
      generation: Type.Integer({ minimum: 0 }),
      secretIds: Type.Array(id, { maxItems: mostValues }),
    }),
    { maxItems: mostValues },
  ),
})

const ToldSecretsShape = Compile(ToldSecrets)

export const isSecretsOfRunner = (value: unknown): value is SecretsOfRunner => ToldSecretsShape.Check(value)

const UsedContexts = Type.Object({
  organizationId: Type.Optional(id),
  inUse: Type.Array(Type.Object({ organizationId: name, hashes: Type.Array(name, { maxItems: 10 * mostValues }) }), {
    maxItems: 10 * mostValues,
  }),
})

const ContextsInUseShape = Compile(UsedContexts)

export const isContextsInUse = (value: unknown): value is ContextsInUse => ContextsInUseShape.Check(value)

/** An entry of control's list of sandboxes: the assignment, and the state that control has recorded. */
export type ListedSandbox = { assignment: Assignment; state: SandboxState }

/** An entry of control's list in which only the id is valid. The runner leaves that sandbox alone: it is no stranger. */
export type UnreadableSandbox = { sandboxId: string }

const IdShape = Compile(id)
const StateShape = Compile(name)

const Welcome = Type.Object({
  type: kind('welcome'),
  runnerId: name,
  heartbeatSeconds: Type.Number({ minimum: 0, maximum: 86_400 }),
  databaseId: Type.Optional(name),
})
const Traced = Type.Object({
  traceparent: Type.Optional(Type.String({ maxLength: 4096 })),
  tracestate: Type.Optional(Type.String({ maxLength: 4096 })),
})

const WelcomeShape = Compile(Welcome)
const TracedShape = Compile(Traced)

export const isWelcome = (message: unknown): boolean => WelcomeShape.Check(message)

/** Returns the trace context of a message from control, for telemetry. Empty if the message has none or an invalid one. */
export const placeIn = (message: TracePlace): TracePlace => {
  const { traceparent, tracestate } = message
  return TracedShape.Check(message) ? { traceparent, tracestate } : {}
}

/** All messages that control may send to a runner. A test checks that each part of them has a maximum size. */
export const heard = [Assigned, AssignedImage, AssignedRemoval, ToldSecrets, UsedContexts, Welcome, Traced]

/** Reads an entry of control's list of sandboxes. Undefined if the entry has no valid id of a sandbox. */
export const readListed = (value: unknown): ListedSandbox | UnreadableSandbox | undefined => {
  const record = (value ?? {}) as { id?: unknown } & Partial<ListedSandbox>
  const { assignment, state } = record
  if (StateShape.Check(state) && isAssignment(assignment)) return { assignment, state: state as SandboxState }
  return IdShape.Check(record.id) ? { sandboxId: record.id } : undefined
}

export const isRead = (one: ListedSandbox | UnreadableSandbox): one is ListedSandbox => 'assignment' in one

export const idOf = (one: ListedSandbox | UnreadableSandbox): string => (isRead(one) ? one.assignment : one).sandboxId
