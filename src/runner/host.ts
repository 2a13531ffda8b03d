// The interface through which the runner's other parts start, stop, change and list the sandboxes of this host. Verbs for one
// sandbox run one at a time. Each verb may be requested again.
import type { MemoryKillsHere } from '#src/wire/gate-link.ts'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import type { Assignment, Cause, Progress, RunnerCapabilities, VolumeAssignment } from '#src/wire/runner-link.ts'
import type { Archive } from './archive/pack.ts'
import type { Template } from './overlay/templates.ts'

export const sandboxStatuses = ['started', 'paused', 'stopped', 'archived', 'error'] as const

export type HeldSandbox = {
  id: string
  assignment: Assignment
  status: (typeof sandboxStatuses)[number]
  socketPath: string
  errorReason?: string
  /** Why the assignment was refused. The sandbox is unharmed and unchanged. */
  refused?: string
  /** The archive that holds the disk, once this host has archived the sandbox. */
  archive?: Archive
  /** Why the sandbox does not run, if it ended without a request. */
  cause?: Cause
}

export interface Host {
  readonly instance: string
  readonly capabilities: RunnerCapabilities
  list(): readonly HeldSandbox[]
  get(sandboxId: string): HeldSandbox | undefined
  /**
   * The base image below the sandbox's disk. It is never a template: for a disk that was copied from a template, it is the base
   * image of that template.
   */
  imageOf(sandboxId: string): Promise<string | undefined>
  /** Copies the parent's current disk for a fork, after any verb of the parent. Does nothing if the fork has its disk. */
  copyParent(assignment: Assignment): Promise<void>
  /** Creates, starts, resumes or changes a sandbox until it runs as assigned. Throws with a sentence for a person. */
  start(assignment: Assignment, onProgress?: (progress: Progress) => void): Promise<void>
  /** Freezes all processes and keeps them in memory. A sandbox that has ended meanwhile becomes stopped, with its cause. */
  pause(assignment: Assignment): Promise<void>
  /** Stops a sandbox and keeps its disk. Throws for a sandbox that is not on this host. */
  stop(assignment: Assignment): Promise<void>
  /** Moves the disk to the archive store. If that fails, the sandbox is stopped, keeps its disk, and `refused` says why. */
  archive(assignment: Assignment, onProgress?: (progress: Progress) => void): Promise<void>
  /** Aborts slow verbs of a sandbox (stops with a grace period, archives, restores), so that `destroy` need not wait for them. */
  cutShort(sandboxId: string): void
  /** Removes a sandbox. Does nothing for a sandbox that never was on this host. */
  destroy(sandboxId: string, withArchives?: 'with archives'): Promise<void>
  /**
   * Makes a template: an image that holds the sandbox's current disk, for new sandboxes. `otherBase` is the base image of the
   * template, in place of the disk's own base; both must have the same files.
   */
  snapshot(sandboxId: string, image: string, otherBase?: string): Promise<void>
  /** All templates (images made of disks), each with its base image. */
  templates(): Promise<({ image: string } & Template)[]>
  /** Reads a template from the disk; undefined if there is none. */
  template(image: string): Promise<Template | undefined>
  /** The base images of all disks and of all templates except `except`. */
  basesInUse(except?: string): Promise<ReadonlySet<string>>
  removeTemplate(image: string): Promise<void>
  /** When a template was made or last marked as used, in milliseconds since 1970. */
  lastUseOfTemplate(image: string): Promise<number>
  markTemplateUsed(image: string): Promise<void>
  /** Removes a volume that no sandbox of this host mounts. No error if it does not exist. */
  removeVolume(volume: Pick<VolumeAssignment, 'volumeId' | 'driver'>): Promise<void>
  /** Size and free space of the file system that holds the disks and templates. */
  room(): Promise<{ freeBytes: number; wholeBytes: number }>
  /**
   * Calls `listener` about a second after a sandbox ended without a request. At that time its processes, network and mounts are
   * removed, and its status is `stopped`.
   */
  onExit(listener: (sandboxId: string, cause: Cause) => void): void
  /** Measures what a running or paused sandbox uses. Undefined for any other sandbox. */
  measure(sandboxId: string): Promise<MeterReading | undefined>
  /** What all running or paused sandboxes use, by id. */
  measureAll(): Promise<ReadonlyMap<string, MeterReading>>
  /**
   * How often, since a sandbox's start, the kernel killed processes in it because memory ran out, and when that may have been.
   */
  memoryKills(sandboxId: string): MemoryKillsHere
  /** Calls `listener` whenever `get` would return another value for a sandbox. Returns a function that unsubscribes. */
  onChange(listener: (sandboxId: string) => void): () => void
  /**
   * Calls `listener` when a process was killed or refused inside a sandbox that keeps running, at most once in ten minutes per
   * sandbox. A listener that could not send the mishap returns false, and is called again.
   */
  onMishap(listener: (sandboxId: string, cause: Cause) => boolean): void
  close(): Promise<void>
}
