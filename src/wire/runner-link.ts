// Messages between control and a runner. The runner gets the desired states of its sandboxes from `GET /sandbox/for-runner`. The
// runner reports with `PUT /sandbox/{id}/state`. The link, a WebSocket to `/runners/link`, carries the same messages sooner.
// Messages may arrive twice or late, so a receiver ignores a message with an outdated `generation`.
import type { GateOfHost } from './hosts.ts'
import type { ImageStorage } from './image-storage.ts'
import type { MeterSample } from './meter-reading.ts'
import type { SandboxState } from './sandbox-state.ts'
import type { SecretsOfRunner } from './secrets.ts'

/** The states into which control can ask a runner to bring a sandbox. */
export type Target = 'started' | 'stopped' | 'paused' | 'archived' | 'destroyed'

export type NetworkPolicy = {
  blockAll: boolean
  /**
   * IPv4 CIDRs to which the sandbox may connect. `null`: no such list. If `domains` is missing too, the sandbox may connect to
   * every public address.
   */
  allowList: readonly string[] | null
  /**
   * Domain names (lower-case ASCII) to which the sandbox may connect, in addition to `allowList`. `*.a.test` means all names below
   * `a.test`. Absent or `null`: no list.
   */
  domains?: readonly string[] | null
  /** True if the sandbox has secrets: its connections to port 443 go through the proxy of src/egress. */
  hasSecrets?: boolean
}

/** Where the files of a volume are: on one runner's disk, or in a directory that every runner of the region mounts. */
export const volumeDrivers = ['disk', 'directory'] as const

export type VolumeDriver = (typeof volumeDrivers)[number]

/** A mount of a volume in a sandbox. If `subpath` is present, only this directory of the volume is mounted. */
export type VolumeMount = { volumeId: string; mountPath: string; subpath?: string }

/** Maximum number of volumes of one sandbox. */
export const mostVolumes = 16

export type AssignedVolume = VolumeMount & {
  driver: VolumeDriver
  /** Size limit of the volume. Only the driver `disk` enforces the limit; the driver `directory` does not. */
  sizeGiB: number
  /**
   * True if no sandbox with this volume has run yet. Only then may the runner create the volume's directory. Otherwise a missing
   * directory means lost files, which is an error.
   */
  isNew?: boolean
}

/**
 * The desired state of one sandbox. `generation` grows with every change. A runner that knows a newer generation of the sandbox
 * ignores the assignment.
 */
export type Assignment = {
  sandboxId: string
  organizationId: string
  regionId: string
  name: string
  generation: number
  target: Target
  /** The signal that the sandbox's processes get when the sandbox is stopped. After SIGTERM, SIGKILL follows in 10 s. */
  signal: 'SIGTERM' | 'SIGKILL'
  /** Name of the sandbox's image: a path relative to the runner's pool. */
  image: string
  /** Name of the snapshot that the sandbox was created from. The sandbox's processes get this name as an environment variable. */
  snapshot: string
  user: string
  env: Record<string, string>
  /** Names of variables that processes do not get, although the image or Alcove sets them. `env` contains none of these names. */
  unsetEnv?: readonly string[]
  /** Command that runs at each start of the sandbox. Absent or empty: no command. */
  entrypoint?: readonly string[]
  /** The language in which the toolbox runs the code of a `code-run` call that names no language. */
  language: string
  cpu: number
  memoryGiB: number
  diskGiB: number
  network: NetworkPolicy
  /** The address to which programs in the sandbox may send telemetry (OpenTelemetry). */
  otelEndpoint?: string
  /**
   * True if the sandbox has never run. Only then may the runner make the sandbox's disk. Otherwise a missing disk means lost data,
   * which is an error.
   */
  isNew?: boolean
  /** True if the sandbox runs, as far as control knows. If the sandbox has ended by itself, the runner must not start it again. */
  isRunning?: true
  /** True if the sandbox has no owner yet: it waits in a warm pool to be claimed. */
  isWarm?: true
  /** True if the sandbox only runs the lines of a Dockerfile. Only the runner sets this field, never control. */
  isBuild?: true
  /**
   * The certificate (PEM) of the authority for the hosts of secrets, which the sandbox trusts. Absent: the sandbox has no secrets.
   */
  authority?: string
  /** The volumes that the sandbox mounts. Absent: none. */
  volumes?: readonly AssignedVolume[]
  /** Id of an existing sandbox on the same runner. The new sandbox gets a copy of the existing sandbox's current disk. */
  forkOf?: string
  /**
   * The archive of the sandbox's disk. For the target `archived`, the runner writes this archive. A runner that lacks the disk
   * restores the disk from this archive.
   */
  archive?: ArchiveRef
  /**
   * For the target `stopped`: the runner copies the disk into the store under this id, and keeps the disk. A second attempt has the
   * same id.
   */
  save?: Pick<ArchiveRef, 'id'>
}

export type ArchiveRef = {
  /** Id of the archive. Control chooses the id, so that a second attempt writes the same archive. */
  id: string
  /**
   * SHA-256 of the archive's manifest in lower-case hex. Absent until the archive is written. A restore refuses a
   * manifest with any other hash.
   */
  sha256?: string
}

/** Why a sandbox is in its state, as separate fields, so that the sandbox's timeline can show each field. */
export type Cause = {
  exitCode?: number
  signal?: string
  oomKilled?: boolean
  /** A sentence that explains the cause to people. */
  detail?: string
}

export type Report = {
  sandboxId: string
  generation: number
  state: Extract<SandboxState, Target | 'error'>
  errorReason?: string
  recoverable?: boolean
  cause?: Cause
  /** Why the runner refused this generation's change. The sandbox still works as before the change. */
  refused?: string
  /** The archive that the runner has written. Present only with the state `archived`. */
  archive?: WrittenArchive
}

/** A complete archive in the store, with its size before compression (`bytes`) and after compression (`storedBytes`). */
export type WrittenArchive = Required<ArchiveRef> & {
  bytes: number
  storedBytes: number
  /** The name of the disk's base (docs/adr/0046): the image below the disk. Absent: every host of the region has that image. */
  base?: string
}

/** The form of the name under which the files of a base image are in the store. */
export const baseName = /^base-[0-9a-f]{64}$/

/** The runner has stored a stopped sandbox's disk, as the field `save` of the sandbox's assignment asks. */
export type SavedDisk = { sandboxId: string; archive: WrittenArchive }

/** The runner could not store a stopped sandbox's disk. The runner will try again. */
export type UnsavedDisk = { sandboxId: string; archiveId: string; reason: string }

/** The progress of a long operation, to be shown to people. The message may get lost, so no program depends on it. */
export type Progress = { step: string; percent: number }

/** A Dockerfile and the files that its COPY and ADD refer to. */
export type Definition = {
  kind: 'definition'
  dockerfile: string
  /**
   * The contexts for COPY, in the order of unpacking: files of later contexts overwrite files of earlier contexts. Absent: no
   * files.
   */
  contexts?: { organizationId: string; hashes: readonly string[] }
  /** Maps each snapshot name in `FROM` or `--from` to the snapshot's image. Absent: the Dockerfile names no snapshot. */
  snapshots?: Readonly<Record<string, string>>
}

/** Where an image comes from. */
export type ImageSource =
  /** Pull the image with this OCI reference. When control knows the image's digest, the reference contains it. */
  | { kind: 'registry'; reference: string }
  /** Read an OCI layout or archive from the directory that the operator has configured for images. */
  | { kind: 'file'; path: string }
  | Definition
  /**
   * Copy the current disk of a sandbox of this runner. `isMade`: true if the runner has reported that the copy exists. Such a copy
   * is not made again if it is missing.
   */
  | { kind: 'sandbox'; sandboxId: string; isMade?: boolean }
  /**
   * Download a copy of a sandbox's disk from the store. `sha256`: hash of the copy's manifest. `base`: the base image of the copy,
   * which the runner must have first.
   */
  | { kind: 'store'; sha256: string; base: string }

/** An account of an organization at a registry. */
export type RegistryLogin = {
  /** Host, and port if there is one. Docker Hub is `docker.io`. */
  host: string
  /** The account is for the repositories whose names begin with this text. Empty: for all repositories. */
  project: string
  username: string
  password: string
}

/**
 * The desired state of one image on a runner. Control repeats it until the runner reports the result. `GET /runners/images` returns
 * all image assignments.
 */
export type ImageAssignment = {
  /** Name of the image, which is also its directory in the runner's pool. A name is never used for a second image. */
  image: string
  target: 'present' | 'absent'
  /** Where the runner gets the image from. Absent: the runner has the image already, or must remove it. */
  source?: ImageSource
  /** Largest size of the unpacked image in GiB. The runner refuses a larger image. */
  maxGiB: number
  /**
   * The organization that owns the image. The runner limits how many images of one organization it makes at once. Absent: the image
   * belongs to no single organization.
   */
  organizationId?: string
  /**
   * Accounts with which the runner pulls this image, or the images that the Dockerfile in `source` names. Present only if `source`
   * is present.
   */
  logins?: readonly RegistryLogin[]
  /** True if the runner has the image, and should copy it to the store, so that other runners can get it from there. */
  toStore?: true
  /** True if a copy of the image may be in the store. A runner that removes the image must first remove this copy. */
  isStored?: true
}

/** Settings in an image for the sandboxes that are made from it. */
export type ImageConfig = {
  entrypoint: readonly string[]
  env: Record<string, string>
  user: string
  workdir: string
}

/** Limits of an image's settings, which are untrusted. The runner refuses an image whose settings exceed a limit. */
export const imageConfigBounds = {
  words: 1000,
  /**
   * Maximum length of one argument of the command, and of one environment variable: the kernel's limit (MAX_ARG_STRLEN,
   * linux/binfmts.h).
   */
  wordCharacters: 128 * 1024 - 1,
  /** Maximum length of a user name, and of the name of a variable. */
  nameCharacters: 1024,
  /** Maximum length of the path of a directory: PATH_MAX (linux/limits.h). */
  pathCharacters: 4096,
  /** Maximum number of characters of the command and its environment together. */
  characters: 256 * 1024,
} as const

export type ImageReport = {
  image: string
  state: 'present' | 'absent' | 'error'
  errorReason?: string
  /** Digest of a pulled image: `sha256:…`. */
  digest?: string
  sizeBytes?: number
  /** How many bytes the image's files need: sandboxes of this image cannot have smaller disks. Absent: unknown. */
  leastDiskBytes?: number
  config?: ImageConfig
  /** Present if the runner has put the image into the store. `sha256`: the hash of the manifest there. */
  stored?: {
    sha256: string
    /** The base below the image's disk, which the store also has. Absent: every host of the region has the base. */
    base?: string
  }
}

/** A volume that the runner should remove. `GET /runners/volumes` lists all such volumes. */
export type VolumeAssignment = { volumeId: string; driver: VolumeDriver; target: 'absent' }

export type VolumeReport = { volumeId: string; state: 'absent' }

export type RunnerCapabilities = {
  cpu: number
  memoryGiB: number
  diskGiB: number
  runtime: string
  runtimeVersion: string
  hardDiskLimit: boolean
  /** What a pause preserves of a sandbox. `memory`: its processes stay in memory. Absent: the runner cannot pause sandboxes. */
  pause?: 'memory'
  /** What a fork copies of a sandbox: only the disk. Absent: the runner cannot fork sandboxes. */
  fork?: 'disk'
  /** The driver that new volumes get on this runner. Absent: the runner cannot mount volumes. */
  volumes?: VolumeDriver
  /** True if the operator has set ALCOVE_ARCHIVE_STORE on this runner, so that other runners can use the same store. */
  sharesStore?: true
}

/** The trace in which the message was sent (W3C Trace Context). The receiver adds its own telemetry to the trace. */
type Traced = { traceparent?: string; tracestate?: string }

/**
 * Messages from a runner to control. A runner sends `hello` first on each link, and again whenever its list of images
 * changes.
 */
export type FromRunner =
  | {
      type: 'hello'
      address: string
      images: readonly string[]
      capabilities: RunnerCapabilities
      version: string
      /**
       * The gate that reaches the runner's sandboxes. Absent: only gates on the runner's machine reach the sandboxes, at the socket
       * in `address`.
       */
      gate?: GateOfHost
    }
  | ({ type: 'report'; report: Report } & Traced)
  | { type: 'image'; report: ImageReport }
  | { type: 'volume'; report: VolumeReport }
  | ({ type: 'progress'; sandboxId: string; generation: number } & Progress)
  | ({ type: 'image-progress'; image: string } & Progress)
  /**
   * Output of making an image, at most 64 Ki characters per message. The message may get lost, because only people read
   * the output.
   */
  | { type: 'image-log'; image: string; text: string }
  /**
   * The kernel has killed a process in a sandbox that still runs. The message may get lost: only the sandbox's timeline needs it.
   */
  | { type: 'mishap'; sandboxId: string; cause: Cause }
  /** Two messages about saves. Both may get lost: the runner repeats `saved` while the assignment has the field `save`. */
  | ({ type: 'saved' } & SavedDisk)
  | ({ type: 'unsaved' } & UnsavedDisk)
  /** How much of the resources at most 500 sandboxes use now. The message may get lost, because only people read the numbers. */
  | { type: 'meters'; samples: readonly MeterSample[] }
  /** Tells control that the runner still runs. Older runners do not send `imageStorage`. */
  | { type: 'alive'; imageStorage?: ImageStorage }

/**
 * The code with which control closes the link of a runner whose version does not work with control's version. The close reason is a
 * sentence with both versions. The runner then ends for good.
 */
export const closedForVersion = 4002

/**
 * Messages from control to a runner. `list` tells the runner to fetch its lists of sandboxes, images, volumes and secrets again.
 */
export type ToRunner =
  | {
      type: 'welcome'
      runnerId: string
      heartbeatSeconds: number
      /** Id of control's database. A runner ignores all messages of a control with another database. */
      databaseId?: string
    }
  | ({ type: 'assign'; assignment: Assignment } & Traced)
  | { type: 'image'; assignment: ImageAssignment }
  | { type: 'volume'; assignment: VolumeAssignment }
  /** Some of the secrets that the runner's sandboxes use. `GET /runners/secrets` lists all of these secrets. */
  | { type: 'secrets'; secrets: SecretsOfRunner }
  | { type: 'list' }
