// The parts of this host that every verb uses. Each part is opened once, when the runner starts.
import type { Logger } from '#src/kit/log.ts'
import type { ObjectStore } from '#src/runner/archive/store.ts'
import { type Cgroup, cgroupAt } from '#src/runner/cgroup/cgroup.ts'
import type { CpuSpread } from '#src/runner/cgroup/cpus.ts'
import type { DiskSpeed } from '#src/runner/cgroup/disk-speed.ts'
import type { CgroupLayout } from '#src/runner/cgroup/layout.ts'
import type { ResourceLimit } from '#src/runner/cgroup/sandbox-limits.ts'
import type { NetworkPool } from '#src/runner/network/pool.ts'
import type { Filter } from '#src/runner/oci/config.ts'
import type { Runtime } from '#src/runner/oci/runtime.ts'
import type { StoragePool } from '#src/runner/overlay/pool.ts'
import type { VolumeStore } from '#src/runner/volumes/volume-store.ts'
import type { Agent, Jobs } from '#src/toolbox/agent/agent.ts'
import type { ImageConfig } from '#src/wire/runner-link.ts'
import type { ImageStore } from '../images/store.ts'
import type { Journal } from './journal.ts'
import { cgroupPathOf, type Places } from './places.ts'

/**
 * The agent's calls that verbs use. Verbs check that the agent answers, shut the sandbox down, run commands and the entrypoint, and
 * write trusted certificates.
 */
export type AgentLink = Pick<Agent, 'info' | 'shutdown' | 'exec' | 'files'> & { jobs: Pick<Jobs, 'spawn'> }

export type Images = {
  /**
   * Returns the directory with an image's unpacked files. The owners of these files are shifted: the user id in the sandbox plus
   * `uidBase` (oci/ids.ts).
   */
  rootfsOf(image: string): string | undefined
  /** Returns the base image for a new disk: `image` itself or, for the default image, its newest version. */
  newest?(image: string): string
  /** Returns the part of an image's configuration that applies to its sandboxes. */
  configOf?(image: string): ImageConfig | undefined
  /** Returns the user ids that the image needs and that are too large for the usual user id map of a sandbox (oci/ids.ts). */
  largeIdsOf?(image: string): readonly number[]
  /**
   * Returns the identity of an image's files. A disk's archive names its base image by this identity. If other hosts may need the
   * files, puts them into the object store first.
   */
  identityOf?: ImageStore['identityOf']
  /**
   * Calls a function with the name of an image that has the base's files. If this host lacks the files, fetches them first from the
   * object store.
   */
  withBase?: ImageStore['withBase']
}

export type Machine = {
  places: Places
  launcher: string
  /**
   * Path of the runner's own copy of the agent's program. An upgrade replaces the original program, but not this copy, which
   * running sandboxes use.
   */
  agentProgram: string
  agentAt: (socketPath: string) => AgentLink
  cgroups: CgroupLayout
  /** Speed limit of each sandbox's disk. Absent: no limit. */
  diskSpeed: DiskSpeed | undefined
  limitsSwap: boolean
  limitsSockets: boolean
  /**
   * Chooses the processors on which each sandbox runs. Absent: this host cannot bind sandboxes to processors, so each sandbox sees
   * all processors.
   */
  cpus: CpuSpread | undefined
  /** Contents of the host's `/proc/cpuinfo`. */
  hostCpuinfo: string
  hiddenMounts: readonly string[]
  /** Whether each sandbox has its own range of user ids on the host. If false, all sandboxes share one range. */
  mapsOwners: boolean
  resourceLimits: readonly ResourceLimit[]
  runtime: Runtime
  filter: Filter
  /** Paths of /proc and /sys that sandboxes do not see. */
  maskedPaths: readonly string[]
  /** Directory of the layers that add sudo to images (oci/sudo.ts). Absent: sandboxes have no sudo. */
  sudoLayers: string | undefined
  pool: StoragePool
  volumes: VolumeStore
  network: NetworkPool
  images: Images
  /** IPv4 addresses of the DNS resolvers that sandboxes have in `/etc/resolv.conf`. */
  resolvers: readonly string[]
  journal: Journal
  /** The object store with the disks of archived sandboxes. */
  archiveStore: ObjectStore
  bootId: string
  log: Logger
}

export const cgroupOf = (machine: Machine, sandboxId: string): Cgroup =>
  cgroupAt(machine.cgroups, cgroupPathOf(machine.places, sandboxId))

/** Thrown if a verb has failed and each retry would fail, too. The keeper then does not retry the verb. */
export class NotRecoverable extends Error {
  override readonly name = 'NotRecoverable'
}

/** Thrown if the files on a sandbox's disk or volume make a verb fail. A retry would fail too, and the runner is not at fault. */
export class FaultInside extends Error {
  override readonly name = 'FaultInside'
}

/** Returns the sentence that users see about an error. The error itself, with its cause, is only logged. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
