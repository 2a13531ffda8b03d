// Messages between control and a runner. The protocol is level-triggered: `GET /sandbox/for-runner` lists every sandbox of
// the runner with its desired state, and `PUT /sandbox/{id}/state` reports a sandbox's state. The link is a WebSocket that
// the runner opens at `/runners/link`. It carries the same messages sooner; losing it costs only time. Each message may
// arrive twice or late. A message with an older `generation` than its receiver knows has no effect.
import type { ImageStorage } from './image-storage.ts'
import type { MeterSample } from './meter-reading.ts'
import type { SandboxState } from './sandbox-state.ts'
import type { SecretsOfRunner } from './secrets.ts'

/** Desired states of a sandbox that a runner can reach. */
export type Target = 'started' | 'stopped' | 'paused' | 'archived' | 'destroyed'

export type NetworkPolicy = {
  blockAll: boolean
  /** Allowed IPv4 CIDRs. `null`: no list, so everything public is allowed. */
  allowList: readonly string[] | null
  /**
   * Domain names in lower-case ASCII. Their addresses are allowed in addition to the CIDRs. `*.` at the beginning means
   * all names below the domain. Absent or `null`: no list.
   */
  domains?: readonly string[] | null
  /** True if the sandbox has secrets: its connections to port 443 go through the proxy of src/egress. */
  hasSecrets?: boolean
}

/** Where the files of a volume are: on one runner's disk, or in a directory that every runner of the region mounts. */
export const volumeDrivers = ['disk', 'directory'] as const

export type VolumeDriver = (typeof volumeDrivers)[number]

/** A mount of a volume in a sandbox. `subpath`: only this directory of the volume is mounted. */
export type VolumeMount = { volumeId: string; mountPath: string; subpath?: string }

/** Most volumes of one sandbox. */
export const mostVolumes = 16

export type AssignedVolume = VolumeMount & {
  driver: VolumeDriver
  /** Limit of the volume. Only the driver `disk` enforces it. */
  sizeGiB: number
  /**
   * True if no sandbox with this volume has run. Only then may the runner make the volume's files: if they are missing
   * later, they were lost.
   */
  isNew?: boolean
}

/** The desired state of one sandbox. `generation` grows with every change; a runner ignores older assignments. */
export type Assignment = {
  sandboxId: string
  organizationId: string
  regionId: string
  name: string
  generation: number
  target: Target
  /** Signal for the processes when the sandbox is stopped. 10 s after SIGTERM comes SIGKILL. */
  signal: 'SIGTERM' | 'SIGKILL'
  /** Name of the image of the sandbox, below the runner's pool. */
  image: string
  /** The snapshot's name, for the sandbox's own environment. */
  snapshot: string
  user: string
  env: Record<string, string>
  /**
   * Names of variables of the image, or of the server, that processes do not get. None of these names is in `env`.
   * Absent: none.
   */
  unsetEnv?: readonly string[]
  /** Command that runs at each start of the sandbox. Absent or empty: no command. */
  entrypoint?: readonly string[]
  /** Language of a `code-run` call that names no language. */
  language: string
  cpu: number
  memoryGiB: number
  diskGiB: number
  network: NetworkPolicy
  /** Endpoint to which programs in the sandbox may send telemetry. */
  otelEndpoint?: string
  /**
   * True if the sandbox has never run. Only then may the runner make its disk: if the disk is missing later, it was
   * lost.
   */
  isNew?: boolean
  /**
   * True if the sandbox runs, as far as control knows. If the sandbox has ended by itself since then, the runner must
   * not start it again.
   */
  isRunning?: true
  /** True if the sandbox has no owner yet: it waits in a warm pool to be claimed. */
  isWarm?: true
  /** True if the sandbox runs the steps of a definition. Only a runner itself sets this field. */
  isBuild?: true
  /** The certificate, as PEM, of the authority that the sandbox trusts for its secrets. Absent: it has no secrets. */
  authority?: string
  /** The volumes that the sandbox mounts. Absent: none. */
  volumes?: readonly AssignedVolume[]
  /** Id of a sandbox on the same runner. The new sandbox gets a copy of that sandbox's current disk. */
  forkOf?: string
  /** Archive to which the target `archived` writes the disk, and from which a runner without the disk restores it. */
  archive?: ArchiveRef
}

export type ArchiveRef = {
  /** Id of the archive, chosen by control, so that a retry writes the same archive. */
  id: string
  /** SHA-256 of the archive's manifest in lower-case hex, once it is written. A restore accepts no other manifest. */
  sha256?: string
}

/** Why a sandbox is in its state, in separate fields that a timeline can show. */
export type Cause = {
  exitCode?: number
  signal?: string
  oomKilled?: boolean
  /** A sentence about the cause, for people. */
  detail?: string
}

export type Report = {
  sandboxId: string
  generation: number
  state: Extract<SandboxState, Target | 'error'>
  errorReason?: string
  recoverable?: boolean
  cause?: Cause
  /** Why the runner did not make the change of this generation. The sandbox is unchanged and still works. */
  refused?: string
  /** The archive that was written. Present only with the state `archived`. */
  archive?: Required<ArchiveRef> & { bytes: number; storedBytes: number }
}

/** Progress of a long operation. Best effort: nothing depends on this message. */
export type Progress = { step: string; percent: number }

/** A Dockerfile and the files that its COPY and ADD refer to. */
export type Definition = {
  kind: 'definition'
  dockerfile: string
  /** Contexts in order; a later context overwrites files of an earlier one. Absent: the definition has no files. */
  contexts?: { organizationId: string; hashes: readonly string[] }
  /** For each name of a snapshot in FROM and `--from`, the snapshot's image. Absent: no name there is a snapshot. */
  snapshots?: Readonly<Record<string, string>>
}

/** Where an image comes from. */
export type ImageSource =
  /** Pull an image by its OCI reference. Control adds the digest once it is known. */
  | { kind: 'registry'; reference: string }
  /** Read an OCI layout or archive from the directory that the operator has configured for images. */
  | { kind: 'file'; path: string }
  | Definition
  /**
   * Copy the current disk of a sandbox of this runner. `isMade`: the copy was made before. If it is missing now, it was
   * lost.
   */
  | { kind: 'sandbox'; sandboxId: string; isMade?: boolean }

/** An account of an organization at a registry. */
export type RegistryLogin = {
  /** Host, and port if there is one. Docker Hub is `docker.io`. */
  host: string
  /** Beginning of the names of the repositories that the account is for. Empty: all repositories. */
  project: string
  username: string
  password: string
}

/** The desired state of one image on this runner. Level-triggered like an assignment; `GET /runners/images` lists them. */
export type ImageAssignment = {
  /** Name of the image below the runner's pool. A name is never used for a second image. */
  image: string
  target: 'present' | 'absent'
  /** Source of the image. Absent: control knows that the runner has the image, or wants it removed. */
  source?: ImageSource
  /** Largest unpacked size in GiB. Larger images are refused. */
  maxGiB: number
  /**
   * The organization that owns the image. The runner makes only a limited number of its images at the same time.
   * Absent: the image has no single owner.
   */
  organizationId?: string
  /**
   * Accounts of the organization for pulling this image, or the images that its definition names. Present only with a
   * source.
   */
  logins?: readonly RegistryLogin[]
}

/** Settings in an image for the sandboxes that are made from it. */
export type ImageConfig = {
  entrypoint: readonly string[]
  env: Record<string, string>
  user: string
  workdir: string
}

/**
 * Limits of an image's settings, which are untrusted. A runner refuses an image above these limits. Neither control nor
 * the runner reads more.
 */
export const imageConfigBounds = {
  words: 1000,
  /** Longest word, and longest variable: the kernel's limit (MAX_ARG_STRLEN, linux/binfmts.h). */
  wordCharacters: 128 * 1024 - 1,
  /** Longest user, and longest name of a variable. */
  nameCharacters: 1024,
  /** Longest path of a directory: PATH_MAX (linux/limits.h). */
  pathCharacters: 4096,
  /** Most characters of the command and its environment together. */
  characters: 256 * 1024,
} as const

export type ImageReport = {
  image: string
  state: 'present' | 'absent' | 'error'
  errorReason?: string
  /** Digest of a pulled image: `sha256:…`. */
  digest?: string
  sizeBytes?: number
  /**
   * Least disk size for a sandbox of this image: the bytes that the image itself needs on that disk. Absent: unknown.
   */
  leastDiskBytes?: number
  config?: ImageConfig
}

/** A volume that the runner should remove. `GET /runners/volumes` lists them. */
export type VolumeAssignment = { volumeId: string; driver: VolumeDriver; target: 'absent' }

export type VolumeReport = { volumeId: string; state: 'absent' }

export type RunnerCapabilities = {
  cpu: number
  memoryGiB: number
  diskGiB: number
  runtime: string
  runtimeVersion: string
  hardDiskLimit: boolean
  /** How a pause keeps running processes: in memory. Absent: the runner cannot pause. */
  pause?: 'memory'
  /** What a fork copies: only the disk. */
  fork?: 'disk'
  /** The driver of new volumes. Absent: the runner cannot mount volumes. */
  volumes?: VolumeDriver
}

/**
 * The sender's place in a trace (W3C Trace Context). It connects the telemetry of control and the runner, and has no
 * other effect.
 */
type Traced = { traceparent?: string; tracestate?: string }

/**
 * Messages from a runner to control. `hello` is the first message. It is sent again whenever the runner's images
 * change.
 */
export type FromRunner =
  | { type: 'hello'; address: string; images: readonly string[]; capabilities: RunnerCapabilities; version: string }
  | ({ type: 'report'; report: Report } & Traced)
  | { type: 'image'; report: ImageReport }
  | { type: 'volume'; report: VolumeReport }
  | ({ type: 'progress'; sandboxId: string; generation: number } & Progress)
  | ({ type: 'image-progress'; image: string } & Progress)
  /** Output of making the image, at most 64 Ki characters per message. Best effort: only people read it. */
  | { type: 'image-log'; image: string; text: string }
  /** A process was killed in a sandbox that lives on. Best effort: only the sandbox's timeline shows it. */
  | { type: 'mishap'; sandboxId: string; cause: Cause }
  /** Current resource use of at most 500 sandboxes. Best effort: only people read it. */
  | { type: 'meters'; samples: readonly MeterSample[] }
  /** Heartbeat of the runner. `imageStorage` is absent from older runners. */
  | { type: 'alive'; imageStorage?: ImageStorage }

/** Messages from control to a runner. `list` tells the runner to fetch the whole list again. */
export type ToRunner =
  | {
      type: 'welcome'
      runnerId: string
      heartbeatSeconds: number
      /** Id of control's database. */
      databaseId?: string
    }
  | ({ type: 'assign'; assignment: Assignment } & Traced)
  | { type: 'image'; assignment: ImageAssignment }
  | { type: 'volume'; assignment: VolumeAssignment }
  /** Secrets of some sandboxes of the runner. `GET /runners/secrets` lists all. */
  | { type: 'secrets'; secrets: SecretsOfRunner }
  | { type: 'list' }
