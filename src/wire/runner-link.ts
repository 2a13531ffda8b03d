// What control and a runner say to each other.
//
// The truth is level-triggered: `GET /sandbox/for-runner` lists every sandbox of the runner with what it should be, and
// `PUT /sandbox/{id}/state` reports what it is. The link, one WebSocket opened by the runner at `/runners/link`, says the
// same things sooner; losing it costs latency only. Everything here may arrive twice or late: `generation` decides.
import type { MeterSample } from './meter-reading.ts'
import type { SandboxState } from './sandbox-state.ts'

/** What a runner can bring about. */
export type Target = 'started' | 'stopped' | 'paused' | 'archived' | 'destroyed'

export type NetworkPolicy = {
  blockAll: boolean
  /** IPv4 CIDRs; `null`: no list, everything public is allowed. */
  allowList: readonly string[] | null
  /**
   * Names whose addresses are allowed besides the CIDRs: lower-case ASCII, with `*.` in front everything below. Absent or
   * `null`: no list.
   */
  domains?: readonly string[] | null
}

/** What one sandbox should be. `generation` grows with every change of it; a runner ignores older ones. */
export type Assignment = {
  sandboxId: string
  organizationId: string
  regionId: string
  name: string
  generation: number
  target: Target
  /** How processes are asked to end on the way to `stopped`; after 10 s of SIGTERM comes SIGKILL. */
  signal: 'SIGTERM' | 'SIGKILL'
  /** Names the image below the runner's pool. */
  image: string
  /** The snapshot's name, for the sandbox's own environment. */
  snapshot: string
  user: string
  env: Record<string, string>
  /** The command that is run each time it starts; absent or empty: none. */
  entrypoint?: readonly string[]
  /** Language of a `code-run` that names none. */
  language: string
  cpu: number
  memoryGiB: number
  diskGiB: number
  network: NetworkPolicy
  /** Where what runs inside may send its telemetry. */
  otelEndpoint?: string
  /** It has never run. Only then may a disk be made for it: a disk that is missing later is lost, not new. */
  isNew?: boolean
  /** It runs, as far as control knows, and something about it changes at most: if it has ended by itself since, it stays so. */
  isRunning?: true
  /** Nobody's yet: it waits in a warm pool to be claimed. */
  isWarm?: true
  /** The sandbox on the same runner whose disk, as it is now, becomes the disk of this new one. */
  forkOf?: string
  /** Where its disk goes with the target `archived`, and comes from where the runner has none. */
  archive?: ArchiveRef
}

export type ArchiveRef = {
  /** Chosen by control, so that doing it twice writes the same archive. */
  id: string
  /** Hash of the manifest, as lower hex, once it is written: a restore accepts no other. */
  sha256?: string
}

/** Why a sandbox is as it is, in parts a timeline can show. */
export type Cause = {
  exitCode?: number
  signal?: string
  oomKilled?: boolean
  /** A sentence for a person. */
  detail?: string
}

export type Report = {
  sandboxId: string
  generation: number
  state: Extract<SandboxState, Target | 'error'>
  errorReason?: string
  recoverable?: boolean
  cause?: Cause
  /** The sandbox is well, and as it was before; why what this generation asked for was not done. */
  refused?: string
  /** With `archived`: what was written. */
  archive?: Required<ArchiveRef> & { bytes: number; storedBytes: number }
}

/** How far something long has come. Never needed for being right, so it may be lost. */
export type Progress = { step: string; percent: number }

/** A Dockerfile, and the files of its builder's machine that COPY and ADD mean. */
export type Definition = {
  kind: 'definition'
  dockerfile: string
  /** In this order they lie over each other; absent: it has none. */
  contexts?: { organizationId: string; hashes: readonly string[] }
  /** Names in FROM and `--from` that are snapshots here, with the images of these. Absent: none is. */
  snapshots?: Readonly<Record<string, string>>
}

/** Where an image comes from. */
export type ImageSource =
  /** An OCI reference; once its digest is known, control says it with the digest. */
  | { kind: 'registry'; reference: string }
  /** An OCI layout or archive below the directory that the operator set aside for them. */
  | { kind: 'file'; path: string }
  | Definition
  /** The disk of a sandbox of this runner, as it is now; `isMade`: as it was, so that it is there or lost for good. */
  | { kind: 'sandbox'; sandboxId: string; isMade?: boolean }

/** What one image should be on this runner; level-triggered like an assignment, listed by `GET /runners/images`. */
export type ImageAssignment = {
  /** Name of the image below the runner's pool: never given twice, so an image never changes. */
  image: string
  target: 'present' | 'absent'
  /** Absent: control has heard that it is here, or wants it away. */
  source?: ImageSource
  /** Larger ones are refused, unpacked. */
  maxGiB: number
  /** For whom it is made, who waits for the others of theirs; absent: for nobody alone. */
  organizationId?: string
}

/** What an image says of the sandboxes that are made from it. */
export type ImageConfig = {
  entrypoint: readonly string[]
  env: Record<string, string>
  user: string
  workdir: string
}

/** An image may say anything of itself: a runner brings none that says more than this, and neither side reads more. */
export const imageConfigBounds = {
  words: 1000,
  /** Longest word, and longest variable: the kernel's limit (MAX_ARG_STRLEN, linux/binfmts.h). */
  wordCharacters: 128 * 1024 - 1,
  /** Longest user, and longest name of a variable. */
  nameCharacters: 1024,
  /** Longest directory: PATH_MAX (linux/limits.h). */
  pathCharacters: 4096,
  /** Most characters of the command and its environment together. */
  characters: 256 * 1024,
} as const

export type ImageReport = {
  image: string
  state: 'present' | 'absent' | 'error'
  errorReason?: string
  /** `sha256:…` of what was pulled, where it was pulled. */
  digest?: string
  sizeBytes?: number
  /** What the disk of a sandbox made from it has to hold at least: what it puts there itself. Absent: nothing that is known. */
  leastDiskBytes?: number
  config?: ImageConfig
}

export type RunnerCapabilities = {
  cpu: number
  memoryGiB: number
  diskGiB: number
  runtime: string
  runtimeVersion: string
  hardDiskLimit: boolean
  /** How a pause keeps what runs: in memory only, or on disk too. Absent: it cannot pause. */
  pause?: 'memory'
  /** What a fork carries over. */
  fork?: 'disk'
}

/** Where the sender was in a trace (W3C Trace Context): whoever watches both programs sees one. Means nothing otherwise. */
type Traced = { traceparent?: string; tracestate?: string }

/** Runner → control. `hello` comes first and again whenever the runner's images change. */
export type FromRunner =
  | { type: 'hello'; address: string; images: readonly string[]; capabilities: RunnerCapabilities; version: string }
  | ({ type: 'report'; report: Report } & Traced)
  | { type: 'image'; report: ImageReport }
  | ({ type: 'progress'; sandboxId: string; generation: number } & Progress)
  | ({ type: 'image-progress'; image: string } & Progress)
  /** What was said while it was made, a piece of at most 64 Ki characters. For people only, so it may be lost. */
  | { type: 'image-log'; image: string; text: string }
  /** Something went wrong inside a sandbox that lives on. For its timeline only, so it may be lost. */
  | { type: 'mishap'; sandboxId: string; cause: Cause }
  /** What sandboxes use now, at most 500 of them. For people only, so it may be lost. */
  | { type: 'meters'; samples: readonly MeterSample[] }
  | { type: 'alive' }

/** Control → runner. `list` asks the runner to take the whole list anew. */
export type ToRunner =
  | { type: 'welcome'; runnerId: string; heartbeatSeconds: number /** Of control. */; databaseId?: string }
  | ({ type: 'assign'; assignment: Assignment } & Traced)
  | { type: 'image'; assignment: ImageAssignment }
  | { type: 'list' }
