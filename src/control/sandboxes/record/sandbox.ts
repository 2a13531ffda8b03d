// The row of a sandbox, and what control makes of it: list items, records and assignments.
import type { ArchiveRef, AssignedVolume, Assignment, Target } from '#src/wire/runner-link.ts'
import type { DesiredState } from '#src/wire/sandbox-state.ts'
import { trustVariables } from '#src/wire/secrets.ts'
import {
  type ColumnValues,
  columns,
  type ListedColumn,
  listedColumns,
  type RecordedColumn,
  recordedColumns,
  type ShownValue,
  type Size,
} from './columns.ts'
import { isRunning } from './lifecycle.ts'
import type { SandboxListItem, SandboxRecord } from './schemas.ts'

export const sizeOf = ({ cpu, memory_gib, disk_gib }: SandboxRow): Size => ({
  cpu,
  memoryGiB: memory_gib,
  diskGiB: disk_gib,
})

/** A row of `sandboxes`, and columns of other tables that some queries add. */
export type SandboxRow = ColumnValues & {
  /** Columns of the table `runners`, for the sandbox's runner. */
  runner_is_silent?: boolean | null
  runner_heartbeat_at?: Date | null
  runner_lost_at?: Date | null
  /**
   * Address at which the runner serves the toolboxes of its sandboxes. `null` until the runner has connected for the
   * first time.
   */
  runner_address?: string | null
  /** The gate of the runner's host (`GateOfHost`). */
  runner_gate_id?: string | null
  runner_gate_address?: string | null
  runner_gate_url?: string | null
  /**
   * What the runner preserves at a pause, and what it copies at a fork: `disk`, or `memory` (with the disk). `null`: the
   * runner cannot pause, or cannot fork.
   */
  runner_pause?: SandboxRecord['pauseKind'] | null
  runner_fork?: SandboxRecord['forkKind'] | null
  /** The time at which the previous state was written. Only the row that `writeState` returns has this value. */
  previous_state_changed_at?: Date
}

export type ListedRow = Pick<SandboxRow, ListedColumn | 'runner_is_silent' | 'runner_heartbeat_at' | 'runner_gate_url'>

/** Returns the `errorReason` of replies. While the runner is silent, the reason says since when. */
const reasonOf = (row: ListedRow): string | null => {
  if (!row.runner_is_silent || row.state === 'destroyed' || row.state === 'error') return row.error_reason
  const since = row.runner_heartbeat_at?.toISOString() ?? 'it was registered'
  return `Its runner has not answered since ${since}; this is the last known state.`
}

const defined = <T extends object>(fields: { [K in keyof T]: T[K] | null | undefined }): Partial<T> => {
  const kept: Partial<T> = {}
  for (const name in fields) {
    const value = fields[name]
    if (value !== null && value !== undefined) kept[name] = value
  }
  return kept
}

const buildInfoOf = ({ build, image, created_at, updated_at }: SandboxRow): SandboxRecord['buildInfo'] =>
  build === null
    ? undefined
    : {
        dockerfileContent: build.dockerfile,
        ...defined({ contextHashes: build.contextHashes }),
        createdAt: created_at.toISOString(),
        updatedAt: updated_at.toISOString(),
        snapshotRef: image,
      }

/**
 * Functions for columns whose shown value differs from the stored value. If a function returns null or undefined, the reply lacks
 * the field.
 */
const listedAs = {
  // The user of an image may include a group (`user:group`). Only the user is shown.
  os_user: (row) => row.os_user.replace(/:.*$/s, ''),
  snapshot: (row) => row.snapshot || null,
  network_allow_list: (row) => row.network_allow_list?.join(','),
  domain_allow_list: (row) => row.domain_allow_list?.join(','),
  error_reason: (row) => reasonOf(row),
  pause_kind: (row) => (row.state === 'paused' ? row.pause_kind : null),
} as const satisfies { [N in ListedColumn]?: (row: ListedRow) => ShownValue<N> | null | undefined }

const recordedAs = {
  build: (row) => buildInfoOf(row),
  volumes: (row) => row.volumes.map(({ placed, ...mount }) => mount),
  // The field `secrets` is left out for a sandbox without secrets, because the SDKs do not know the field.
  secrets: (row) =>
    row.secrets.length === 0 ? undefined : row.secrets.map(({ variable, secretId }) => ({ variable, secretId })),
} as const satisfies { [N in RecordedColumn]?: (row: SandboxRow) => ShownValue<N> | null | undefined }

type AsText<T> = T extends Date ? string : T
type Unlike<N extends ListedColumn | RecordedColumn> = {
  [C in N]: NonNullable<AsText<SandboxRow[C]>> extends ShownValue<C> ? never : C
}[N]
type Never<T extends never> = T
/**
 * Compile-time check: if a column and its field in replies have different types, `listedAs` or `recordedAs` must have a function
 * for the column.
 */
export type ShownAsTheyAre = Never<
  Unlike<Exclude<ListedColumn | RecordedColumn, keyof typeof listedAs | keyof typeof recordedAs>>
>

type Field<Row> = { name: string; valueIn: (row: Row) => unknown }

const fieldsOf = <Row extends object>(
  names: readonly (ListedColumn | RecordedColumn)[],
  shownAs: Partial<Record<string, (row: Row) => unknown>>,
): Field<Row>[] =>
  names.map((name) => ({
    name: columns[name].shown.name,
    valueIn: shownAs[name] ?? ((row) => row[name as keyof Row]),
  }))

const listFields = fieldsOf<ListedRow>(listedColumns, listedAs)
const recordFields = fieldsOf<SandboxRow>(recordedColumns, recordedAs)

const show = <Row>(fields: readonly Field<Row>[], row: Row): Record<string, unknown> => {
  const shown: Record<string, unknown> = {}
  for (const { name, valueIn } of fields) {
    const value = valueIn(row)
    if (value !== null && value !== undefined) shown[name] = value instanceof Date ? value.toISOString() : value
  }
  return shown
}

/** Returns the toolbox URL on the gate of the sandbox's host. If that gate has no public URL, uses the server's `proxyUrl`. */
const toolboxUrlOf = ({ runner_gate_url }: ListedRow, proxyUrl: string) => `${runner_gate_url ?? proxyUrl}/toolbox`

/** Returns an item of a listing, without the fields that only single records have. */
export const asListItem = (row: ListedRow, proxyUrl: string): SandboxListItem =>
  ({
    ...show(listFields, row),
    gpu: 0,
    backupState: 'None',
    toolboxProxyUrl: toolboxUrlOf(row, proxyUrl),
  }) as SandboxListItem

/** Returns the sandbox as a full record of the API. */
export const asRecord = (row: SandboxRow, proxyUrl: string): SandboxRecord => ({
  ...asListItem(row, proxyUrl),
  ...(show(recordFields, row) as Pick<
    SandboxRecord,
    'env' | 'buildInfo' | 'otelEndpointOverride' | 'volumes' | 'secrets'
  >),
})

const targetOf = (desired: DesiredState): Target => {
  if (desired === 'resized') throw new Error('no runner can be asked for resized')
  return desired
}

/**
 * Returns the archive that the runner needs. Leaves out an archive from before the last start. Otherwise a runner could restore
 * this old archive after it lost the present disk.
 */
const archiveOf = (row: SandboxRow): ArchiveRef | undefined => {
  if (row.archive_id === null) return undefined
  if (row.archived_at !== null && row.archive_sha256 !== null) {
    return { id: row.archive_id, sha256: row.archive_sha256 }
  }
  return row.desired_state === 'archived' || row.desired_state === 'destroyed' ? { id: row.archive_id } : undefined
}

/** Returns the save that the runner must make of the stopped disk. Returns undefined if control requests no save. */
const saveOf = ({ save_state, archive_id, state, desired_state }: SandboxRow): Assignment['save'] =>
  save_state === 'wanted' && state === 'stopped' && desired_state === 'stopped' && archive_id !== null
    ? { id: archive_id }
    : undefined

/**
 * Returns the volumes for the assignment. Once the sandbox has started, its volumes exist, so the runner must not
 * create them.
 */
const volumesOf = ({ volumes, first_started_at }: SandboxRow): AssignedVolume[] | undefined => {
  const assigned = volumes.flatMap(({ placed, ...mount }) => {
    if (placed === undefined) return []
    const { isNew, ...where } = placed
    return [{ ...mount, ...where, ...(isNew && first_started_at === null ? { isNew } : {}) }]
  })
  return assigned.length === 0 ? undefined : assigned
}

export const languageLabel = 'code-toolbox-language'

/** The label that selects the `Host` header of preview requests. `localhost`: servers in the sandbox get `Host: localhost`. */
export const previewHostLabel = 'preview-host'

/**
 * Returns the default language of the toolbox call `code-run`, from a label of the sandbox. The runner would refuse a value that is
 * not a single word.
 */
const languageOf = ({ labels }: SandboxRow): string => {
  const language = labels[languageLabel] ?? ''
  return /^[a-z]{1,32}$/.test(language) ? language : 'python'
}

/**
 * Returns the sandbox's environment variables. If the sandbox has secrets, adds their placeholders and `trustVariables`,
 * because programs must trust the proxy for secrets. A value in `env` overrides a trust variable, but no placeholder.
 */
const envOf = ({ env, unset_env, secrets, secret_authority }: SandboxRow): Record<string, string> => {
  if (secrets.length === 0) return env
  const placeholders = secrets.map(({ variable, placeholder }) => [variable, placeholder] as const)
  const added = { ...(secret_authority === null ? {} : trustVariables), ...env, ...Object.fromEntries(placeholders) }
  return Object.fromEntries(Object.entries(added).filter(([name]) => !unset_env.includes(name)))
}

/** Returns the sandbox as an assignment for its runner. */
export const asAssignment = (row: SandboxRow): Assignment => ({
  sandboxId: row.id,
  organizationId: row.organization_id,
  regionId: row.region_id,
  name: row.name,
  generation: row.generation,
  target: targetOf(row.desired_state),
  signal: row.stop_signal,
  image: row.image,
  snapshot: row.snapshot || row.image,
  user: row.os_user,
  env: envOf(row),
  language: languageOf(row),
  cpu: row.cpu,
  memoryGiB: row.memory_gib,
  diskGiB: row.disk_gib,
  network: {
    blockAll: row.network_block_all,
    allowList: row.network_allow_list,
    domains: row.domain_allow_list,
    ...(row.secrets.length === 0 ? {} : { hasSecrets: true }),
  },
  isNew: row.first_started_at === null,
  ...defined({
    entrypoint: row.entrypoint,
    isRunning: isRunning(row.state, row.desired_state) ? (true as const) : null,
    isWarm: row.warm_pool_id === null ? null : (true as const),
    forkOf: row.first_started_at === null ? row.parent_id : null,
    authority: row.secrets.length === 0 ? null : row.secret_authority,
    volumes: volumesOf(row),
    archive: archiveOf(row),
    save: saveOf(row),
    otelEndpoint: row.otel_endpoint,
    unsetEnv: row.unset_env.length === 0 ? null : row.unset_env,
  }),
})
