// The request and reply schemas of the sandbox endpoints.
import Type, { type Static } from 'typebox'
import { CreateBuildInfo } from '#src/control/build-info.ts'
import { DateTime, optional, orNull, textMap } from '#src/http/shapes.ts'
import { baseName, mostVolumes } from '#src/wire/runner-link.ts'
import { sandboxStates } from '#src/wire/sandbox-state.ts'
import { askedShapes, listedShapes, oneOf, recordedShapes, sandboxClasses, TextMap } from './columns.ts'

const SandboxState = oneOf(sandboxStates)
const SandboxClass = oneOf(sandboxClasses)

export const largestInterval = 525_600_000

/** Longest interval of automatic archiving, in minutes (30 days). */
export const maxAutoArchiveInterval = 43_200

const Minutes = Type.Integer({ minimum: 0, maximum: largestInterval })

/** The fields that lists show of a sandbox: its columns, and constant fields. */
const listed = {
  ...listedShapes,
  gpu: Type.Number(),
  backupState: Type.String(),
  daemonVersion: Type.Optional(Type.String()),
  toolboxProxyUrl: Type.String(),
}

export const SandboxListItem = Type.Object(listed)
export const SandboxRecord = Type.Object({ ...listed, ...recordedShapes })

export type SandboxListItem = Static<typeof SandboxListItem>
export type SandboxRecord = Static<typeof SandboxRecord>

/**
 * Allowed networks and allowed domains, each as one text with commas between the items. An empty text means that there
 * is no list.
 */
const networkLists = {
  networkAllowList: Type.Optional(Type.String({ maxLength: 1024 })),
  domainAllowList: Type.Optional(Type.String({ maxLength: 4096 })),
}

export const NetworkSettings = Type.Object({ networkBlockAll: Type.Optional(Type.Boolean()), ...networkLists })

export type NetworkSettings = Static<typeof NetworkSettings>

/** Each item of the array maps names of environment variables to names of secrets. */
const AskedSecrets = Type.Array(textMap({ names: 255, values: 128, most: 1000 }), { maxItems: 1000 })

export const SandboxSecrets = Type.Object({ secrets: AskedSecrets })
export type SandboxSecrets = Static<typeof SandboxSecrets>

/**
 * The body of a create. The body includes unsupported fields of Daytona's API, which `verbs/create-body.ts` refuses with a message.
 * The validator silently drops all other fields.
 */
export const CreateSandbox = Type.Object({
  ...askedShapes,
  name: Type.Optional(Type.String({ maxLength: 255 })),
  snapshot: Type.Optional(Type.String({ maxLength: 255 })),
  user: Type.Optional(
    Type.String({
      pattern: '^[a-z_][a-z0-9_-]{0,31}$',
      description: 'the name of a user, such as daytona',
      maxLength: 32,
    }),
  ),
  env: Type.Optional(TextMap),
  labels: Type.Optional(TextMap),
  networkBlockAll: Type.Optional(Type.Boolean()),
  ...networkLists,
  outboundProxyUrl: Type.Optional(Type.Unknown()),
  otelEndpointOverride: optional(Type.String({ maxLength: 2048 })),
  target: Type.Optional(Type.String({ maxLength: 255 })),
  cpu: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  memory: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  disk: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  gpu: Type.Optional(Type.Unknown()),
  gpuType: Type.Optional(Type.Unknown()),
  spot: Type.Optional(Type.Unknown()),
  autoStopInterval: Type.Optional(Minutes),
  autoPauseInterval: Type.Optional(Minutes),
  autoArchiveInterval: Type.Optional(Minutes),
  autoDeleteInterval: Type.Optional(Type.Integer({ minimum: -largestInterval, maximum: largestInterval })),
  ttlMinutes: Type.Optional(Minutes),
  volumes: optional(
    Type.Array(
      Type.Object({
        volumeId: Type.String({ maxLength: 255 }),
        mountPath: Type.String({ maxLength: 1024 }),
        subpath: optional(Type.String({ maxLength: 1024 })),
      }),
      { maxItems: mostVolumes },
    ),
  ),
  buildInfo: Type.Optional(CreateBuildInfo),
  linkedSandbox: Type.Optional(Type.Unknown()),
  secrets: optional(AskedSecrets),
})

export type CreateSandbox = Static<typeof CreateSandbox>

const amount = Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 }))

export const ResizeSandbox = Type.Object({ cpu: amount, memory: amount, disk: amount })

export type ResizeSandbox = Static<typeof ResizeSandbox>

export const ForkSandbox = Type.Object({ name: Type.Optional(Type.String({ maxLength: 255 })) })

export type ForkSandbox = Static<typeof ForkSandbox>

export const CreateSandboxSnapshot = Type.Object({
  name: Type.String({ maxLength: 255 }),
  includeMemory: Type.Optional(Type.Boolean()),
})

export type CreateSandboxSnapshot = Static<typeof CreateSandboxSnapshot>

export const SandboxLabels = Type.Object({ labels: TextMap })

export const ByIdOrName = Type.Object({ sandboxIdOrName: Type.String({ minLength: 1, maxLength: 255 }) })

export const GetQuery = Type.Object({ verbose: Type.Optional(Type.Boolean()) })
export const StopQuery = Type.Object({ force: Type.Boolean({ default: false }) })
export const ForksQuery = Type.Object({ includeDestroyed: Type.Boolean({ default: false }) })
export const RecoverQuery = Type.Object({ skipStart: Type.Boolean({ default: false }) })

const sizeFilter = Type.Optional(Type.Number({ minimum: 1 }))
const timeFilter = Type.Optional(DateTime)
const textFilter = Type.Optional(Type.String({ maxLength: 255 }))
const manyTexts = Type.Optional(Type.Array(Type.String({ maxLength: 255 }), { maxItems: 200 }))
const limit = Type.Integer({ minimum: 1, maximum: 200, default: 100 })

/** The filters that both listings of sandboxes have: `GET /sandbox` and `GET /sandbox/paginated`. */
const filters = {
  id: textFilter,
  name: textFilter,
  /** Filter by labels: a JSON object whose values are texts. */
  labels: Type.Optional(Type.String({ maxLength: 16_384 })),
  includeErroredDeleted: Type.Boolean({ default: false }),
  states: Type.Optional(Type.Array(SandboxState, { maxItems: 100 })),
  snapshots: manyTexts,
  minCpu: sizeFilter,
  maxCpu: sizeFilter,
  minMemoryGiB: sizeFilter,
  maxMemoryGiB: sizeFilter,
  minDiskGiB: sizeFilter,
  maxDiskGiB: sizeFilter,
  lastEventAfter: timeFilter,
  lastEventBefore: timeFilter,
}

export const listSorts = ['name', 'cpu', 'memoryGib', 'diskGib', 'lastActivityAt', 'createdAt'] as const

export const ListQuery = Type.Object({
  ...filters,
  cursor: Type.Optional(Type.String({ maxLength: 2048 })),
  limit,
  includeWarm: Type.Boolean({ default: false }),
  regionIds: manyTexts,
  sandboxClasses: Type.Optional(Type.Array(SandboxClass, { maxItems: 20 })),
  isPublic: Type.Optional(Type.Boolean()),
  isRecoverable: Type.Optional(Type.Boolean()),
  createdAtAfter: timeFilter,
  createdAtBefore: timeFilter,
  autoDestroyAtAfter: timeFilter,
  autoDestroyAtBefore: timeFilter,
  sort: Type.Enum([...listSorts], { default: 'lastActivityAt' }),
  order: Type.Enum(['asc', 'desc'], { default: 'desc' }),
})

export type ListQuery = Static<typeof ListQuery>

export const pageSorts = [
  'id',
  'name',
  'state',
  'snapshot',
  'region',
  'updatedAt',
  'createdAt',
  'lastActivityAt',
] as const

export const PageQuery = Type.Object({
  ...filters,
  page: Type.Integer({ minimum: 1, maximum: 10_000_000, default: 1 }),
  limit,
  regions: manyTexts,
  sort: Type.Enum([...pageSorts], { default: 'createdAt' }),
  order: Type.Enum(['asc', 'desc'], { default: 'desc' }),
})

export type PageQuery = Static<typeof PageQuery>

export const ListSandboxesResponse = Type.Object({
  items: Type.Array(SandboxListItem),
  nextCursor: orNull(Type.String()),
})

export const PaginatedSandboxes = Type.Object({
  items: Type.Array(SandboxRecord),
  total: Type.Number(),
  page: Type.Number(),
  totalPages: Type.Number(),
})

export const ForRunnerQuery = Type.Object({
  states: Type.Optional(Type.Array(SandboxState, { maxItems: 100 })),
  skipReconcilingSandboxes: Type.Boolean({ default: false }),
  // A page begins after this id. Pages keep replies short for a runner with many sandboxes. Daytona's API has no `after`.
  after: Type.Optional(Type.String({ maxLength: 255 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500 })),
  // With `envOnce`, an answer has a sandbox's variables `env` only once, and not again in `assignment`, because the variables may
  // be large. Daytona's API has no `envOnce`.
  envOnce: Type.Boolean({ default: false }),
})

export type ForRunnerQuery = Static<typeof ForRunnerQuery>

/** The error reason that a runner reports. It may contain the end of a command's output, so it can be long. */
export const Reason = Type.String({ maxLength: 1024 * 1024 })

export const Cause = Type.Object({
  exitCode: Type.Optional(Type.Integer()),
  signal: Type.Optional(Type.String({ maxLength: 255 })),
  oomKilled: Type.Optional(Type.Boolean()),
  detail: Type.Optional(Reason),
})

/** The query of a timeline. Daytona's API has no timeline. */
export const TimelineQuery = Type.Object({
  cursor: Type.Optional(Type.String({ maxLength: 2048 })),
  limit,
  order: Type.Enum(['asc', 'desc'], { default: 'desc' }),
})

export type TimelineQuery = Static<typeof TimelineQuery>

export const SandboxEvent = Type.Object({
  /** Events are sorted by this number, which grows with time. */
  id: Type.Integer(),
  at: DateTime,
  /**
   * The state before the event. `null`: the event is the creation. Equal to `to`: the event did not change the state.
   */
  from: orNull(SandboxState),
  to: SandboxState,
  /** A user's id, a runner's id, or the name of a timer. */
  by: Type.Object({ kind: oneOf(['user', 'runner', 'timer']), id: Type.String() }),
  reason: Type.Optional(Type.String()),
  cause: Type.Optional(Cause),
})

export type SandboxEvent = Static<typeof SandboxEvent>

export const SandboxEvents = Type.Object({
  items: Type.Array(SandboxEvent),
  nextCursor: orNull(Type.String()),
})

export const ArchiveReport = Type.Object({
  id: Type.String({ maxLength: 255 }),
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$', maxLength: 64 }),
  bytes: Type.Integer({ minimum: 0 }),
  storedBytes: Type.Integer({ minimum: 0 }),
  base: Type.Optional(Type.String({ pattern: baseName.source, maxLength: 69 })),
})

/** The states that a runner can report. */
export const reportable = ['started', 'stopped', 'paused', 'archived', 'destroyed', 'error'] as const

/**
 * A report of a runner in the API. Some fields are in Daytona's API; only our runner sends the other fields (wire/runner-link.ts).
 */
export const UpdateSandboxState = Type.Object({
  state: SandboxState,
  errorReason: Type.Optional(Reason),
  recoverable: Type.Optional(Type.Boolean()),
  generation: Type.Optional(Type.Integer({ minimum: 0 })),
  cause: Type.Optional(Cause),
  refused: Type.Optional(Reason),
  archive: Type.Optional(ArchiveReport),
})

export type UpdateSandboxState = Static<typeof UpdateSandboxState>
