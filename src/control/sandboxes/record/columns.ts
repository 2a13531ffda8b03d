// All columns of the table `sandboxes`. Each entry of this list says how replies show the column, where its value comes from, and
// whether a fork or a removed sandbox keeps it. Types, replies, forks and claims follow from this list. `columns.test.ts` tries
// every entry on a real sandbox.

import Type, { type Static, type TSchema } from 'typebox'
import { BuildInfo } from '#src/control/build-info.ts'
import { DateTime, textMap } from '#src/http/shapes.ts'
import type { AssignedVolume, Progress, VolumeMount } from '#src/wire/runner-link.ts'
import { type DesiredState, desiredStates, type SandboxState, sandboxStates } from '#src/wire/sandbox-state.ts'

/** Resources of a host that a sandbox uses. */
export type Size = { cpu: number; memoryGiB: number; diskGiB: number }

export const oneOf = <const T extends string>(values: readonly T[]) => Type.Enum([...values] as T[])

export const sandboxClasses = ['linux-vm', 'container', 'android', 'windows'] as const

export const TextMap = textMap({ names: 65_536, values: 65_536, most: 1000 })

export const SandboxVolume = Type.Object({
  volumeId: Type.String(),
  mountPath: Type.String(),
  subpath: Type.Optional(Type.String()),
})

/** A mount of a volume, and what the runner needs to know about the volume. Without `placed`, the sandbox has no runner yet. */
export type PlacedMount = VolumeMount & { placed?: Pick<AssignedVolume, 'driver' | 'sizeGiB' | 'isNew'> }

/**
 * A sandbox's secret in API replies: the variable and the secret's id. The endpoint `GET /secret` returns the secret's
 * name.
 */
export const SandboxSecret = Type.Object({ variable: Type.String(), secretId: Type.String() })

/**
 * A secret that a sandbox uses. In the sandbox, the environment variable `variable` contains the placeholder instead of
 * the secret's value.
 */
export type MountedSecret = { variable: string; secretId: string; placeholder: string }

type Described = {
  /**
   * Where the value in a new row comes from. `given`: from the code that inserts the row. `default`: from the database.
   * `may be given`: either.
   */
  begins: 'given' | 'may be given' | 'default'
  /** `copied`: a fork gets the value of its parent. `own`: a fork gets a new value. */
  fork: 'copied' | 'own'
  /** Whether the value stays after the runner has removed the sandbox. `shed`: the trigger `shed_when_gone` empties the column. */
  gone: 'stays' | 'shed'
  /** `kept`: a warm sandbox keeps its value at a claim. Absent: the claim writes the caller's value. */
  claim?: 'kept'
  isJson?: true
  /**
   * The field of API replies that shows the column. `lists`: lists and single records have the field. `records`: only single
   * records.
   */
  shown?: { in: 'lists' | 'records'; name: string; shape: TSchema }
  /** Present if the body of a create can set the column. `otherwise`: the value if the body lacks the field. */
  asked?: { shape: TSchema; otherwise: unknown }
}

/** Only for the compiler: holds the type of a column's values. No object has the field `value` at runtime. */
type Typed<T> = { value?: { of: T } }

/** Describes a column. `T`: the type of the column's values in a row. */
const column =
  <T>() =>
  <const D extends Described>(described: D): D & Typed<T> =>
    described

/** A column that a create writes. A fork copies the value from its parent. */
const copied = { begins: 'given', fork: 'copied', gone: 'stays' } as const
/** A column that a create writes. A fork gets its own value, not its parent's. */
const own = { begins: 'given', fork: 'own', gone: 'stays' } as const
/** A column that has the database's default in a new row. Later changes of the sandbox write the column. */
const later = { begins: 'default', fork: 'own', gone: 'stays' } as const

const inLists = <const N extends string, S extends TSchema>(name: N, shape: S) =>
  ({ in: 'lists', name, shape }) as const
const inRecords = <const N extends string, S extends TSchema>(name: N, shape: S) =>
  ({ in: 'records', name, shape }) as const

const Text = Type.String()
const Whole = Type.Number()
const Flag = Type.Boolean()

export const columns = {
  id: column<string>()({ ...own, claim: 'kept', shown: inLists('id', Text) }),
  organization_id: column<string>()({ ...copied, shown: inLists('organizationId', Text) }),
  name: column<string>()({ ...own, claim: 'kept', shown: inLists('name', Text) }),
  snapshot: column<string>()({ ...copied, shown: inLists('snapshot', Type.Optional(Text)) }),
  os_user: column<string>()({ ...copied, shown: inLists('user', Text) }),
  labels: column<Record<string, string>>()({
    ...copied,
    gone: 'shed',
    isJson: true,
    shown: inLists('labels', TextMap),
  }),
  public: column<boolean>()({ ...copied, shown: inLists('public', Flag), asked: { shape: Flag, otherwise: false } }),
  network_block_all: column<boolean>()({ ...copied, shown: inLists('networkBlockAll', Flag) }),
  network_allow_list: column<string[] | null>()({
    ...copied,
    shown: inLists('networkAllowList', Type.Optional(Text)),
  }),
  domain_allow_list: column<string[] | null>()({ ...copied, shown: inLists('domainAllowList', Type.Optional(Text)) }),
  region_id: column<string>()({ ...copied, shown: inLists('target', Text) }),
  cpu: column<number>()({ ...copied, shown: inLists('cpu', Whole) }),
  memory_gib: column<number>()({ ...copied, shown: inLists('memory', Whole) }),
  disk_gib: column<number>()({ ...copied, shown: inLists('disk', Whole) }),
  spot: column<boolean>()({ ...later, shown: inLists('spot', Flag) }),
  state: column<SandboxState>()({ ...own, claim: 'kept', shown: inLists('state', oneOf(sandboxStates)) }),
  desired_state: column<DesiredState>()({
    ...own,
    claim: 'kept',
    shown: inLists('desiredState', oneOf(desiredStates)),
  }),
  error_reason: column<string | null>()({ ...later, shown: inLists('errorReason', Type.Optional(Text)) }),
  recoverable: column<boolean | null>()({ ...later, shown: inLists('recoverable', Type.Optional(Flag)) }),
  warm_pool_id: column<string | null>()({
    ...own,
    begins: 'may be given',
    shown: inLists('warmPoolId', Type.Optional(Text)),
  }),
  auto_stop_interval: column<number>()({ ...copied, shown: inLists('autoStopInterval', Whole) }),
  auto_pause_interval: column<number>()({ ...copied, shown: inLists('autoPauseInterval', Whole) }),
  auto_archive_interval: column<number>()({ ...copied, shown: inLists('autoArchiveInterval', Whole) }),
  auto_delete_interval: column<number>()({ ...copied, shown: inLists('autoDeleteInterval', Whole) }),
  // The time at which the sandbox's time to live ends. A fork gets its parent's value, or an earlier time because of the region's
  // limit (verbs/fork.ts).
  auto_destroy_at: column<Date | null>()({ ...own, shown: inLists('autoDestroyAt', Type.Optional(DateTime)) }),
  created_at: column<Date>()({ ...own, shown: inLists('createdAt', DateTime) }),
  updated_at: column<Date>()({ ...later, shown: inLists('updatedAt', DateTime) }),
  last_activity_at: column<Date>()({ ...later, shown: inLists('lastActivityAt', DateTime) }),
  sandbox_class: column<(typeof sandboxClasses)[number]>()({
    ...copied,
    shown: inLists('sandboxClass', oneOf(sandboxClasses)),
  }),
  runner_id: column<string | null>()({
    ...copied,
    claim: 'kept',
    shown: inLists('runnerId', Type.Optional(Text)),
  }),
  spot_evicted_at: column<Date | null>()({ ...later, shown: inLists('spotEvictedAt', Type.Optional(DateTime)) }),
  saved_at: column<Date | null>()({ ...later, shown: inLists('savedAt', Type.Optional(DateTime)) }),
  // Callers cannot set the next columns: what a pause preserved, what a fork copied, and how far a slow verb is.
  pause_kind: column<'memory' | null>()({ ...later, shown: inLists('pauseKind', Type.Optional(oneOf(['memory']))) }),
  fork_kind: column<'disk' | null>()({
    ...own,
    begins: 'may be given',
    shown: inLists('forkKind', Type.Optional(oneOf(['disk']))),
  }),
  progress: column<Progress | null>()({
    ...later,
    isJson: true,
    shown: inLists('progress', Type.Optional(Type.Object({ step: Text, percent: Whole }))),
  }),

  env: column<Record<string, string>>()({ ...copied, gone: 'shed', isJson: true, shown: inRecords('env', TextMap) }),
  /** Variables of the image or of Alcove that processes of the sandbox do not get. No name is in both `env` and `unset_env`. */
  unset_env: column<string[]>()({ ...copied, begins: 'may be given', gone: 'shed' }),
  /** The definition from which the sandbox's image is built. `user`: the user that the create requested. */
  build: column<{ dockerfile: string; contextHashes?: string[]; user: string | null } | null>()({
    ...copied,
    begins: 'may be given',
    gone: 'shed',
    isJson: true,
    shown: inRecords('buildInfo', Type.Optional(BuildInfo)),
  }),
  /** The mounted volumes. A fork mounts the volumes of its parent. */
  volumes: column<PlacedMount[]>()({
    ...copied,
    begins: 'may be given',
    gone: 'shed',
    isJson: true,
    shown: inRecords('volumes', Type.Array(SandboxVolume)),
  }),
  /** The mounted secrets. A fork has the secrets of its parent. */
  secrets: column<MountedSecret[]>()({
    ...copied,
    begins: 'may be given',
    gone: 'shed',
    isJson: true,
    shown: inRecords('secrets', Type.Optional(Type.Array(SandboxSecret))),
  }),
  /** The CA certificate by which the sandbox trusts the runner's proxy for secrets. Null if the sandbox has never had a secret. */
  secret_authority: column<string | null>()({ ...copied, begins: 'may be given', gone: 'shed' }),
  /** Telemetry endpoint that the sandbox's creator gave. */
  otel_endpoint_override: column<string | null>()({
    ...copied,
    begins: 'may be given',
    shown: inRecords('otelEndpointOverride', Type.Optional(Text)),
  }),

  /** The telemetry endpoint that the sandbox uses: the one that its creator gave, or else that of the region. */
  otel_endpoint: column<string | null>()({ ...copied, begins: 'may be given' }),
  snapshot_id: column<string>()(copied),
  image: column<string>()(copied),
  /** The entrypoint: the command that runs at each start. Null if the image has no entrypoint. */
  entrypoint: column<string[] | null>()({ ...copied, gone: 'shed' }),
  version: column<number>()({ ...own, claim: 'kept' }),
  generation: column<number>()({ ...own, claim: 'kept' }),
  /**
   * Calls into the sandbox wait until its runner has applied this generation. Example: the generation with changed environment
   * variables.
   */
  least_generation: column<number | null>()(later),
  stop_signal: column<'SIGTERM' | 'SIGKILL'>()(later),
  state_changed_at: column<Date>()(later),
  stopped_at: column<Date | null>()(later),
  stuck_at: column<Date | null>()(later),
  destroyed_at: column<Date | null>()(later),
  gone_at: column<Date | null>()(later),
  first_started_at: column<Date | null>()(later),
  resize_from: column<Size | null>()({ ...later, isJson: true }),
  snapshot_image: column<string | null>()(later),
  archive_id: column<string | null>()(later),
  archive_sha256: column<string | null>()(later),
  archive_bytes: column<number | null>()(later),
  archive_stored_bytes: column<number | null>()(later),
  /**
   * The base image below the archived disk, if a runner may have to fetch it from the store. Null: every host of the region has
   * that image.
   */
  archive_base: column<string | null>()(later),
  archived_at: column<Date | null>()(later),
  /**
   * `wanted`: the runner should save the stopped disk. `saved`: the store has a save of the present disk
   * (record/saves.ts).
   */
  save_state: column<'wanted' | 'saved' | null>()(later),
  archive_not_before: column<Date | null>()(later),
  /**
   * For a sandbox that ran when control began to empty its runner. `restart`: control must start the sandbox again. `restarting`:
   * control has requested that start. `refused`: the runner could not archive the sandbox.
   */
  emptying: column<'restart' | 'restarting' | 'refused' | null>()(later),
  parent_id: column<string | null>()({ ...own, begins: 'may be given' }),
  ancestor_ids: column<string[]>()({ ...own, begins: 'may be given' }),
  preview_token: column<string>()(own),
  signing_key: column<string>()(own),
  created_by: column<string>()(own),
} as const satisfies Record<string, Described>

type Columns = typeof columns
export type ColumnName = keyof Columns

/** The names of the columns whose descriptions in `columns` have the type `Said`. */
type Where<Said> = { [N in ColumnName]: Columns[N] extends Said ? N : never }[ColumnName]

/** The values of a sandbox's row in the database. */
export type ColumnValues = { -readonly [N in ColumnName]: NonNullable<Columns[N]['value']>['of'] }

/** The column values that a create gives. Every other column of a new row gets the database's default. */
export type NewSandbox = Pick<ColumnValues, Where<{ begins: 'given' }>> &
  Partial<Pick<ColumnValues, Where<{ begins: 'may be given' }>>>

/** The columns that a claim writes on a warm sandbox: those of a create, except the ones that a warm sandbox keeps. */
export type RequestedColumns = Omit<NewSandbox, Where<{ claim: 'kept' }>>

export type ListedColumn = Where<{ shown: { in: 'lists' } }>
export type RecordedColumn = Where<{ shown: { in: 'records' } }>
type AskedColumn = Where<{ asked: object }>

const entries = Object.entries(columns) as [ColumnName, Described][]

const namesWhere = <N extends ColumnName>(holds: (described: Described) => boolean) =>
  entries.filter(([, described]) => holds(described)).map(([name]) => name) as N[]

/** Columns that a listing returns. A page has up to 200 items, so queries for a page read no other columns. */
export const listedColumns = namesWhere<ListedColumn>(({ shown }) => shown?.in === 'lists')
export const recordedColumns = namesWhere<RecordedColumn>(({ shown }) => shown?.in === 'records')
const copiedColumns = namesWhere<Where<{ fork: 'copied' }>>(({ fork }) => fork === 'copied')
export const jsonColumns = namesWhere<Where<{ isJson: true }>>(({ isJson }) => isJson === true)
const askedColumns = namesWhere<AskedColumn>(({ asked }) => asked !== undefined)

type ShapesOf<N extends ColumnName> = {
  [C in N as Columns[C] extends { shown: { name: infer F extends string } } ? F : never]: Columns[C] extends {
    shown: { shape: infer S }
  }
    ? S
    : never
}

const shapesOf = <N extends ColumnName>(names: readonly N[]): ShapesOf<N> =>
  Object.fromEntries(
    names.map((name) => [(columns[name] as Described).shown!.name, (columns[name] as Described).shown!.shape]),
  ) as ShapesOf<N>

/** `listedShapes`: the fields of an item in a listing. `recordedShapes`: the additional fields of a single record. */
export const listedShapes = shapesOf(listedColumns)
export const recordedShapes = shapesOf(recordedColumns)

/** The type of the field of API replies that shows the column `N`. */
export type ShownValue<N extends ColumnName> = Columns[N] extends { shown: { shape: infer S extends TSchema } }
  ? Static<S>
  : never

type AskedShapes = {
  [C in AskedColumn as Columns[C]['shown']['name']]: ReturnType<typeof Type.Optional<Columns[C]['asked']['shape']>>
}

/** The fields of the create's body that are stored unchanged. */
export const askedShapes = Object.fromEntries(
  askedColumns.map((name) => [columns[name].shown.name, Type.Optional(columns[name].asked.shape)]),
) as AskedShapes

/** Returns the columns for those fields of the create's body that are stored unchanged. */
export const askedOf = (body: Partial<Record<string, unknown>>): Pick<ColumnValues, AskedColumn> =>
  Object.fromEntries(
    askedColumns.map((name) => [name, body[columns[name].shown.name] ?? columns[name].asked.otherwise]),
  ) as Pick<ColumnValues, AskedColumn>

/** Returns the values of the columns that a fork copies from its parent. */
export const copiedOf = (parent: ColumnValues): Pick<ColumnValues, Where<{ fork: 'copied' }>> =>
  Object.fromEntries(copiedColumns.map((name) => [name, parent[name]])) as never
