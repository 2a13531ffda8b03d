// A sandbox as control knows it, read from its row, and the three ways in which others see it.
import type { ArchiveRef, Assignment, Progress, Target } from '#src/wire/runner-link.ts'
import type { DesiredState, SandboxState } from '#src/wire/sandbox-state.ts'
import { isRunning } from './lifecycle.ts'
import type { SandboxListItem, SandboxRecord } from './schemas.ts'
import type { Size } from './size.ts'

export const sizeOf = ({ cpu, memory_gib, disk_gib }: SandboxRow): Size => ({
  cpu,
  memoryGiB: memory_gib,
  diskGiB: disk_gib,
})

export type SandboxRow = {
  id: string
  organization_id: string
  name: string
  region_id: string
  sandbox_class: SandboxRecord['sandboxClass']
  snapshot_id: string
  snapshot: string
  image: string
  /** The definition that its image is built from, and the user that its caller named. */
  build: { dockerfile: string; contextHashes?: string[]; user: string | null } | null
  os_user: string
  /** What runs each time it starts; null where its image says nothing. */
  entrypoint: string[] | null
  env: Record<string, string>
  labels: Record<string, string>
  public: boolean
  network_block_all: boolean
  network_allow_list: string[] | null
  domain_allow_list: string[] | null
  /** Where its creator wants its telemetry sent; and where it is, which may be where its region says. */
  otel_endpoint_override: string | null
  otel_endpoint: string | null
  cpu: number
  memory_gib: number
  disk_gib: number
  state: SandboxState
  desired_state: DesiredState
  version: number
  generation: number
  /** Calls into it wait until its runner has taken this one: before, it was nobody's. */
  least_generation: number | null
  stop_signal: 'SIGTERM' | 'SIGKILL'
  error_reason: string | null
  recoverable: boolean | null
  runner_id: string | null
  warm_pool_id: string | null
  auto_stop_interval: number
  auto_pause_interval: number
  auto_archive_interval: number
  auto_delete_interval: number
  auto_destroy_at: Date | null
  last_activity_at: Date
  state_changed_at: Date
  stopped_at: Date | null
  stuck_at: Date | null
  destroyed_at: Date | null
  gone_at: Date | null
  first_started_at: Date | null
  spot: boolean
  spot_evicted_at: Date | null
  pause_kind: SandboxRecord['pauseKind'] | null
  resize_from: Size | null
  snapshot_image: string | null
  progress: Progress | null
  archive_id: string | null
  archive_sha256: string | null
  archive_bytes: number | null
  archive_stored_bytes: number | null
  archived_at: Date | null
  archive_not_before: Date | null
  parent_id: string | null
  ancestor_ids: string[]
  fork_kind: SandboxRecord['forkKind'] | null
  preview_token: string
  signing_key: string
  created_by: string
  created_at: Date
  updated_at: Date
  /** Of its runner, where the question joined it. */
  runner_is_silent?: boolean | null
  runner_heartbeat_at?: Date | null
  /** Where the toolboxes of its runner are; `null` before its first hello. */
  runner_address?: string | null
  /** How its runner pauses, and what forks there carry over; `null` where it cannot. */
  runner_pause?: SandboxRecord['pauseKind'] | null
  runner_fork?: SandboxRecord['forkKind'] | null
  /** When the state before this one was written; only where this one was written just now. */
  previous_state_changed_at?: Date
}

/** What an item of a listing is made of: a page has up to 200 of them, and a row has much that no item shows. */
export const listedColumns = [
  ...(['id', 'organization_id', 'name', 'os_user', 'labels', 'public', 'network_block_all', 'region_id'] as const),
  ...(['cpu', 'memory_gib', 'disk_gib', 'spot', 'state', 'desired_state', 'sandbox_class', 'snapshot'] as const),
  ...(['auto_stop_interval', 'auto_pause_interval', 'auto_archive_interval', 'auto_delete_interval'] as const),
  ...(['created_at', 'updated_at', 'last_activity_at', 'auto_destroy_at', 'spot_evicted_at'] as const),
  ...(['network_allow_list', 'domain_allow_list', 'error_reason', 'recoverable', 'warm_pool_id', 'runner_id'] as const),
  ...(['pause_kind', 'fork_kind', 'progress'] as const),
] satisfies (keyof SandboxRow)[]

export type ListedRow = Pick<SandboxRow, (typeof listedColumns)[number] | 'runner_is_silent' | 'runner_heartbeat_at'>

/** A runner that is silent leaves the last known state standing; the reason says that it is only that. */
const reasonOf = (row: ListedRow): string | null => {
  if (!row.runner_is_silent || row.state === 'destroyed') return row.error_reason
  const since = row.runner_heartbeat_at?.toISOString() ?? 'it was registered'
  return `Its runner has not been heard since ${since}; this is the last state known.`
}

const defined = <T extends object>(fields: { [K in keyof T]: T[K] | null | undefined }): Partial<T> => {
  const kept: Partial<T> = {}
  for (const name in fields) {
    const value = fields[name]
    if (value !== null && value !== undefined) kept[name] = value
  }
  return kept
}

/** One item of a listing (contract/control-plane.md §11.2): without what only a single read may show. */
export const asListItem = (row: ListedRow, proxyUrl: string): SandboxListItem => ({
  id: row.id,
  organizationId: row.organization_id,
  name: row.name,
  // An image may say a group behind it.
  user: row.os_user.replace(/:.*$/s, ''),
  labels: row.labels,
  public: row.public,
  networkBlockAll: row.network_block_all,
  target: row.region_id,
  cpu: row.cpu,
  gpu: 0,
  memory: row.memory_gib,
  disk: row.disk_gib,
  spot: row.spot,
  state: row.state,
  desiredState: row.desired_state,
  backupState: 'None',
  autoStopInterval: row.auto_stop_interval,
  autoPauseInterval: row.auto_pause_interval,
  autoArchiveInterval: row.auto_archive_interval,
  autoDeleteInterval: row.auto_delete_interval,
  createdAt: row.created_at.toISOString(),
  updatedAt: row.updated_at.toISOString(),
  lastActivityAt: row.last_activity_at.toISOString(),
  sandboxClass: row.sandbox_class,
  toolboxProxyUrl: `${proxyUrl}/toolbox`,
  ...defined({
    snapshot: row.snapshot || null,
    networkAllowList: row.network_allow_list?.join(','),
    domainAllowList: row.domain_allow_list?.join(','),
    errorReason: reasonOf(row),
    recoverable: row.recoverable,
    warmPoolId: row.warm_pool_id,
    autoDestroyAt: row.auto_destroy_at?.toISOString(),
    runnerId: row.runner_id,
    spotEvictedAt: row.spot_evicted_at?.toISOString(),
    pauseKind: row.state === 'paused' ? row.pause_kind : null,
    forkKind: row.fork_kind,
    progress: row.progress,
  }),
})

/** The full record (§11.1). */
export const asRecord = (row: SandboxRow, proxyUrl: string): SandboxRecord => ({
  ...asListItem(row, proxyUrl),
  env: row.env,
  volumes: [],
  ...defined({ buildInfo: buildInfoOf(row), otelEndpointOverride: row.otel_endpoint_override }),
})

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

const targetOf = (desired: DesiredState): Target => {
  if (desired === 'resized') throw new Error('no runner can be asked for resized')
  return desired
}

/**
 * The archive that its runner needs to know: one to write or to take away, or the one that its disk is in. Not one that
 * the sandbox has run on from: a disk that is lost then must not come back as it was long ago.
 */
const archiveOf = (row: SandboxRow): ArchiveRef | undefined => {
  if (row.archive_id === null) return undefined
  if (row.archived_at !== null && row.archive_sha256 !== null) {
    return { id: row.archive_id, sha256: row.archive_sha256 }
  }
  return row.desired_state === 'archived' || row.desired_state === 'destroyed' ? { id: row.archive_id } : undefined
}

export const languageLabel = 'code-toolbox-language'

/** With the value `localhost`, previews call the servers inside by that name. */
export const previewHostLabel = 'preview-host'

/** A label is any text; what is no word would only be refused further on. */
const languageOf = ({ labels }: SandboxRow): string => {
  const language = labels[languageLabel] ?? ''
  return /^[a-z]{1,32}$/.test(language) ? language : 'python'
}

/** What its runner is told. */
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
  env: row.env,
  language: languageOf(row),
  cpu: row.cpu,
  memoryGiB: row.memory_gib,
  diskGiB: row.disk_gib,
  network: {
    blockAll: row.network_block_all,
    allowList: row.network_allow_list,
    domains: row.domain_allow_list,
  },
  isNew: row.first_started_at === null,
  ...defined({
    entrypoint: row.entrypoint,
    isRunning: isRunning(row.state, row.desired_state) ? (true as const) : null,
    isWarm: row.warm_pool_id === null ? null : (true as const),
    forkOf: row.first_started_at === null ? row.parent_id : null,
    archive: archiveOf(row),
    otelEndpoint: row.otel_endpoint,
  }),
})
