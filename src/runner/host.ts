// The interface to the sandboxes of this host. Verbs for one sandbox run one at a time, and a caller may repeat each verb.
import type { MemoryKillsHere } from '#src/wire/gate-link.ts'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import type { Assignment, Cause, Progress, RunnerCapabilities, VolumeAssignment } from '#src/wire/runner-link.ts'
import type { Archive } from './archive/pack.ts'
import type { Template } from './overlay/templates.ts'
import type { Transfer } from './verbs/archive.ts'

export const sandboxStatuses = ['started', 'paused', 'stopped', 'archived', 'error'] as const

export type HeldSandbox = {
  id: string
  assignment: Assignment
  status: (typeof sandboxStatuses)[number]
  socketPath: string
  errorReason?: string
  /** Why the runner refused what the last assignment changes (see `Spec.refused` in machine/journal.ts). */
  refused?: string
  /** The archive that contains the sandbox's disk, if this host has archived the sandbox. */
  archive?: Archive
  /** Why the sandbox ended, if nobody had requested its end. */
  cause?: Cause
}

export interface Host {
  readonly instance: string
  readonly capabilities: RunnerCapabilities
  list(): readonly HeldSandbox[]
  get(sandboxId: string): HeldSandbox | undefined
  /** Returns the base image of the sandbox's disk. If the disk was copied from a template, returns the template's base image. */
  imageOf(sandboxId: string): Promise<string | undefined>
  /**
   * Copies the parent's current disk for a fork, when no verb of the parent is running. Does nothing if the fork already has a
   * disk.
   */
  copyParent(assignment: Assignment): Promise<void>
  /** Makes a sandbox run as assigned. If that fails, throws an error whose message is a sentence for users. */
  start(assignment: Assignment, onProgress?: (progress: Progress) => void): Promise<void>
  /**
   * Freezes all processes of a sandbox. If the sandbox has already ended, its status becomes `stopped`, and the cause is recorded.
   */
  pause(assignment: Assignment): Promise<void>
  /** Stops a sandbox and keeps its disk. Throws if the sandbox is not on this host. */
  stop(assignment: Assignment): Promise<void>
  /**
   * Moves the sandbox's disk to the archive store. If that fails, the sandbox is stopped and keeps its disk, and its `refused` says
   * why.
   */
  archive(assignment: Assignment, onProgress?: (progress: Progress) => void): Promise<void>
  /**
   * Copies the disk of a stopped sandbox to the archive store, as the archive that `assignment.save` names. Returns undefined
   * if a verb aborted the copying, or if the sandbox is not stopped. Throws if the copying failed.
   */
  save(assignment: Assignment): Promise<Archive | undefined>
  /** Aborts a slow verb of the sandbox: a stop with a grace period, an archive or a restore. A later verb then need not wait. */
  cutShort(sandboxId: string): void
  /** Removes a sandbox. If the sandbox was never on this host, does nothing. */
  destroy(sandboxId: string, withArchives?: 'with archives'): Promise<void>
  /**
   * Makes a template from the sandbox's current disk. `otherBase`: the base image to record for the template. The files of
   * `otherBase` must equal those of the disk's own base image.
   */
  snapshot(sandboxId: string, image: string, otherBase?: string): Promise<void>
  templates(): Promise<({ image: string } & Template)[]>
  /** Returns what is recorded about a template, or undefined if there is no template of this name. */
  template(image: string): Promise<Template | undefined>
  /** Returns the base images of all disks, and of all templates other than `except`. */
  basesInUse(except?: string): Promise<ReadonlySet<string>>
  removeTemplate(image: string): Promise<void>
  /** Copies a template to the object store, from which other hosts can fetch the template. A repeated call does no harm. */
  storeTemplate(image: string, signal: AbortSignal): Promise<{ sha256: string; base?: string }>
  /** Fetches a template that another host has copied to the object store. Fails if the template is larger than `maxGiB`. */
  bringTemplate(image: string, from: { sha256: string; maxGiB: number }, transfer: Transfer): Promise<void>
  /** Removes a template from the object store. No error if the template is not there. */
  removeStoredTemplate(image: string): Promise<void>
  /** Returns when a template was made, or last marked as used, in milliseconds since 1970. */
  lastUseOfTemplate(image: string): Promise<number>
  markTemplateUsed(image: string): Promise<void>
  /** Removes a volume that no sandbox of this host mounts. No error if the volume does not exist. */
  removeVolume(volume: Pick<VolumeAssignment, 'volumeId' | 'driver'>): Promise<void>
  /** Returns the size and the free space of the file system that contains the disks and templates. */
  room(): Promise<{ freeBytes: number; wholeBytes: number }>
  /**
   * Calls `listener` about a second after a sandbox has ended by itself. The sandbox's processes, network and mounts are gone by
   * then.
   */
  onExit(listener: (sandboxId: string, cause: Cause) => void): void
  /** Measures what a sandbox uses. Returns undefined if the sandbox is neither running nor paused. */
  measure(sandboxId: string): Promise<MeterReading | undefined>
  /** Measures what each running or paused sandbox uses. Returns the results by id of the sandbox. */
  measureAll(): Promise<ReadonlyMap<string, MeterReading>>
  /** Returns how many processes of a sandbox the kernel has killed for lack of memory since the sandbox's start, and when. */
  memoryKills(sandboxId: string): MemoryKillsHere
  /** Calls `listener` each time that the result of `get` for a sandbox has changed. Returns a function that ends these calls. */
  onChange(listener: (sandboxId: string) => void): () => void
  /**
   * Calls `listener` after a mishap, and after a refused start of a process. For each sandbox and each kind of event, there is at
   * most one call in ten minutes. If `listener` cannot report the event, it returns false, and is called again later.
   */
  onMishap(listener: (sandboxId: string, cause: Cause) => boolean): void
  close(): Promise<void>
}
