// The parts of this host that every verb uses: storage pool, network, journal, OCI runtime and others. They are opened once, at
// the runner's start.
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
import type { Journal } from './journal.ts'
import { cgroupPathOf, type Places } from './places.ts'

/** The agent's calls that verbs need: whether the agent answers, its shutdown, commands, the entrypoint, and files to trust. */
export type AgentLink = Pick<Agent, 'info' | 'shutdown' | 'exec' | 'files'> & { jobs: Pick<Jobs, 'spawn'> }

export type Images = {
  /** The directory of an image's files, shifted to the uids of sandboxes; undefined if the image is not on this host. */
  rootfsOf(image: string): string | undefined
  /** The base image of a new disk: `image` itself, or for the default image its newest version. */
  newest?(image: string): string
  /** The part of an image's configuration that applies to its sandboxes. */
  configOf?(image: string): ImageConfig | undefined
  /** Ids of the users of an image's files above those that every sandbox has (oci/ids.ts). */
  largeIdsOf?(image: string): readonly number[]
}

export type Machine = {
  places: Places
  launcher: string
  /** Path of the runner's own copy of the agent's program, so that an upgrade does not disturb running sandboxes. */
  agentProgram: string
  agentAt: (socketPath: string) => AgentLink
  cgroups: CgroupLayout
  /** Limit for reading and writing a sandbox's disk. Absent: no limit. */
  diskSpeed: DiskSpeed | undefined
  limitsSwap: boolean
  limitsSockets: boolean
  /**
   * Chooses processors for each sandbox. Absent if the host cannot bind sandboxes to processors; then every sandbox sees all
   * processors.
   */
  cpus: CpuSpread | undefined
  /** `/proc/cpuinfo` of the host. */
  hostCpuinfo: string
  hiddenMounts: readonly string[]
  /** Whether each sandbox can have its own range of ids on the host. Otherwise all sandboxes share one range. */
  mapsOwners: boolean
  resourceLimits: readonly ResourceLimit[]
  runtime: Runtime
  filter: Filter
  /** Paths of /proc and /sys that sandboxes do not see. */
  maskedPaths: readonly string[]
  /** Where the layers with sudo are (oci/sudo.ts). Absent: sandboxes have no sudo. */
  sudoLayers: string | undefined
  pool: StoragePool
  volumes: VolumeStore
  network: NetworkPool
  images: Images
  /** IPv4 addresses for `/etc/resolv.conf`. */
  resolvers: readonly string[]
  journal: Journal
  /** The store for the disks of archived sandboxes. */
  archiveStore: ObjectStore
  bootId: string
  log: Logger
}

export const cgroupOf = (machine: Machine, sandboxId: string): Cgroup =>
  cgroupAt(machine.cgroups, cgroupPathOf(machine.places, sandboxId))

/** Thrown for a failure that would occur again at every retry. */
export class NotRecoverable extends Error {
  override readonly name = 'NotRecoverable'
}

/**
 * A failure caused by what is in the sandbox or in its volumes. A retry would fail too, until somebody changes the content. The
 * runner is not the cause, so no warning is logged.
 */
export class FaultInside extends Error {
  override readonly name = 'FaultInside'
}

/** Returns the sentence about a failure that users may read. The error itself, with its cause, goes to the log. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
