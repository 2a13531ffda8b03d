// The sandboxes of this host: what the rest of the runner sees of them. Verbs for one sandbox run one at a time and may be
// asked twice; closing leaves every sandbox running for the next runner to adopt.
import { isAlive } from '#src/kit/process-identity.ts'
import type { MemoryKillsHere } from '#src/wire/gate-link.ts'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import type { ArchiveRef, Assignment, Cause, Progress, RunnerCapabilities } from '#src/wire/runner-link.ts'
import { ArchiveFailed } from './archive/failed.ts'
import type { Archive } from './archive/pack.ts'
import { pidsLimit } from './cgroup/sandbox-limits.ts'
import type { Evidence } from './kernel-memory/watch.ts'
import { expectStart } from './launch.ts'
import type { Spec } from './machine/journal.ts'
import { cgroupOf, type Machine, NotRecoverable, reasonOf } from './machine/machine.ts'
import { capabilitiesOf, type HostParts, openMachine } from './machine/open-machine.ts'
import { checkSandboxId, socketOf } from './machine/places.ts'
import { OneAtATime } from './one-at-a-time.ts'
import { findTemplate, listBases, listTemplates, type Template } from './overlay/templates.ts'
import { type Adopted, adoptSandboxes } from './verbs/adopt.ts'
import { archiveDisk, finishArchiving } from './verbs/archive.ts'
import { changeSandbox } from './verbs/change.ts'
import { clearSandbox } from './verbs/clear.ts'
import { destroySandbox, removeAllOwedArchives } from './verbs/destroy.ts'
import { forkDisk } from './verbs/fork.ts'
import { pauseSandbox, resumeSandbox, whileHeldStill } from './verbs/pause.ts'
import { rehearse } from './verbs/rehearse.ts'
import { makeTemplate } from './verbs/snapshot.ts'
import { RestoreFailed, startSandbox } from './verbs/start.ts'
import { stopSandbox } from './verbs/stop.ts'
import { causeOfEnd, causeOfKills, causeOfRefusals, causeOfTooMuch } from './watching/causes.ts'
import { Lookouts } from './watching/lookouts.ts'

export const sandboxStatuses = ['started', 'paused', 'stopped', 'archived', 'error'] as const

export type HeldSandbox = {
  id: string
  assignment: Assignment
  status: (typeof sandboxStatuses)[number]
  socketPath: string
  errorReason?: string
  /** Why what the assignment asked for was not done; the sandbox is well, and as it was. */
  refused?: string
  /** Where its disk is, once it was archived here. */
  archive?: Archive
  /** Why it does not run, if it ended without being asked to. */
  cause?: Cause
}

export interface Host {
  readonly instance: string
  readonly capabilities: RunnerCapabilities
  list(): readonly HeldSandbox[]
  get(sandboxId: string): HeldSandbox | undefined
  /** The image below its disk, which is never one made of another sandbox's disk. */
  imageOf(sandboxId: string): Promise<string | undefined>
  /** Gives a fork the disk of its parent as it is now, when nothing is being done to the parent. Fine if it has it already. */
  copyParent(assignment: Assignment): Promise<void>
  /** Makes it run as assigned: creates, starts, resumes or changes it, whatever is missing. Throws with a sentence for a person. */
  start(assignment: Assignment, onProgress?: (progress: Progress) => void): Promise<void>
  /** Freezes all processes and keeps them in memory. A sandbox that has ended meanwhile is stopped, with its cause. */
  pause(assignment: Assignment): Promise<void>
  /** Makes it rest, with its disk kept. Throws for a sandbox that is not here. */
  stop(assignment: Assignment): Promise<void>
  /** Moves its disk to the archive store. What cannot be archived is stopped, with its disk, and says why it was refused. */
  archive(assignment: Assignment, onProgress?: (progress: Progress) => void): Promise<void>
  /** Somebody wants its end: what takes long is broken off, so that `destroy` need not wait for it. */
  cutShort(sandboxId: string): void
  /** Makes it gone. Fine for a sandbox that never was here. */
  destroy(sandboxId: string, withArchives?: 'with archives'): Promise<void>
  /**
   * Keeps the disk of a sandbox, as it is now, as an image that others can be made from. `otherBase` lies below it from then on:
   * an image with the same files as the one below the disk.
   */
  snapshot(sandboxId: string, image: string, otherBase?: string): Promise<void>
  /** The images that are disks of sandboxes, each with the image below it. */
  templates(): Promise<({ image: string } & Template)[]>
  /** Reads a template from the disk; undefined where there is none. */
  template(image: string): Promise<Template | undefined>
  /** The images that lie below a disk or a template, but for this one. */
  basesInUse(except?: string): Promise<ReadonlySet<string>>
  removeTemplate(image: string): Promise<void>
  /** Told within about a second when a sandbox has ended without being asked to; it is cleared and `stopped` by then. */
  onExit(listener: (sandboxId: string, cause: Cause) => void): void
  /** What one uses that runs or is paused; undefined for any other. */
  measure(sandboxId: string): Promise<MeterReading | undefined>
  /** What all of them use, by their ids. */
  measureAll(): Promise<ReadonlyMap<string, MeterReading>>
  /** How often its processes were killed for want of memory since it started, and when that may have been. */
  memoryKills(sandboxId: string): MemoryKillsHere
  /** Told of each sandbox that `get` answers otherwise than before. Returns what ends it. */
  onChange(listener: (sandboxId: string) => void): () => void
  /**
   * Told when something went wrong inside a sandbox that lives on, at most once in ten minutes for each. A listener that
   * answers false could not pass it on, and is told again.
   */
  onMishap(listener: (sandboxId: string, cause: Cause) => boolean): void
  close(): Promise<void>
}

export const openHost = async (parts: HostParts): Promise<Host> => {
  const machine = await openMachine(parts)
  return new MachineHost(parts.instance, machine, await adoptSandboxes(machine))
}

/** How often archives are tried again that could not be removed with their sandbox. */
const owedEveryMs = 10 * 60_000

/** How long a sandbox that is to be destroyed lives on while something else is being done to it. */
const patienceMs = 1000

class MachineHost implements Host {
  readonly instance: string
  readonly capabilities: RunnerCapabilities
  readonly #machine: Machine
  readonly #held: Map<string, Adopted>
  /** Images below the disks of running sandboxes, as far as somebody has asked. */
  readonly #images = new Map<string, string>()
  readonly #inLine = new OneAtATime()
  /** Cut short what may take long, under way or in line: polite stops, and moving disks to and from archives. */
  readonly #long = new Map<string, Set<AbortController>>()
  readonly #listeners: ((sandboxId: string, cause: Cause) => void)[] = []
  readonly #lookouts: Lookouts
  /** Ended by us, for what they did to the host. */
  readonly #guilty = new Map<string, Cause>()
  #onMishap: (sandboxId: string, cause: Cause) => boolean = () => false
  readonly #watchers = new Set<(sandboxId: string) => void>()

  readonly #owed: NodeJS.Timeout

  constructor(instance: string, machine: Machine, held: Map<string, Adopted>) {
    this.instance = instance
    this.capabilities = capabilitiesOf(machine)
    this.#machine = machine
    this.#lookouts = new Lookouts(machine, {
      onEnd: (sandboxId) => void this.#inLine.run(sandboxId, () => this.#ended(sandboxId)),
      onTooMuch: (sandboxId, evidence) => this.#punish(sandboxId, evidence),
      holdStill: (sandboxId, release) => this.#holdStill(sandboxId, release),
      onKills: (sandboxId, kills) => this.#killed(sandboxId, kills),
      onRefusals: (sandboxId) => this.#refused(sandboxId),
    })
    this.#held = held
    this.#owed = setInterval(() => void this.#removeOwed(), owedEveryMs).unref()
    for (const [sandboxId, adopted] of held) this.#hold(sandboxId, adopted)
  }

  list() {
    return [...this.#held.keys()].flatMap((sandboxId) => this.get(sandboxId) ?? [])
  }

  get(sandboxId: string): HeldSandbox | undefined {
    const { spec, running } = this.#held.get(sandboxId) ?? {}
    if (spec === undefined) return undefined
    const status = running?.isPaused ? 'paused' : spec.status
    return { ...spec, status, id: sandboxId, socketPath: socketOf(this.#machine.places, sandboxId) }
  }

  async imageOf(sandboxId: string) {
    const known = this.#images.get(sandboxId)
    if (known !== undefined) return known
    const { spec } = this.#held.get(sandboxId) ?? {}
    if (spec === undefined) return undefined
    const found = (await this.#machine.pool.baseOf({ sandboxId })) ?? spec.assignment.image
    if (this.#held.get(sandboxId)?.running) this.#images.set(sandboxId, found)
    return found
  }

  copyParent(assignment: Assignment) {
    const { sandboxId, forkOf } = assignment
    checkSandboxId(sandboxId)
    // In its own line too, so that nobody takes for nothing what is just being made.
    return this.#inLine.run(sandboxId, async () => {
      if (forkOf !== undefined) await this.#forkDisk(assignment, forkOf)
    })
  }

  start(assignment: Assignment, onProgress: (progress: Progress) => void = () => undefined) {
    const { sandboxId } = assignment
    checkSandboxId(sandboxId)
    return this.#cuttable(sandboxId, async (signal) => {
      if (await this.#hasEnded(assignment)) return
      const { spec, running } = this.#held.get(sandboxId) ?? {}
      if (spec && running && isAlive(running.init)) {
        const changed = await changeSandbox(this.#machine, spec, assignment, running)
        this.#hold(sandboxId, { spec: changed, running: await resumeSandbox(this.#machine, sandboxId, running) })
        return
      }
      expectStart()
      try {
        // What ended by itself a moment ago, or could not be cleared away when it failed.
        this.#notRunning(sandboxId)
        if (running || spec?.status === 'error') await clearSandbox(this.#machine, sandboxId, running?.slot)
        if (spec?.status === 'archived') await this.#machine.pool.remove(sandboxId)
        const { isNew, forkOf } = assignment
        const copyDisk = isNew && forkOf !== undefined ? () => this.#forkDisk(assignment, forkOf) : undefined
        const archive = archiveOf(assignment, spec)
        this.#hold(sandboxId, {
          spec: { assignment, status: 'started' },
          running: await startSandbox(this.#machine, assignment, { copyDisk, archive, signal, onProgress }),
        })
        if (assignment.isWarm) await Promise.all([rehearse(this.#machine, assignment), this.imageOf(sandboxId)])
      } catch (error) {
        if (signal.aborted) throw error
        if (error instanceof RestoreFailed) return this.#stillArchived(assignment, spec, error)
        await this.#failed(sandboxId, assignment, error)
        throw error
      }
    })
  }

  pause(assignment: Assignment) {
    const { sandboxId } = assignment
    return this.#inLine.run(sandboxId, async () => {
      await this.#ended(sandboxId)
      const held = this.#held.get(sandboxId)
      if (held === undefined) throw new Error('The sandbox is not on this runner.')
      const { spec, running } = held
      if (running === undefined) {
        if (spec.status === 'error') throw new Error(spec.errorReason ?? 'The sandbox does not run.')
        await this.#rest(assignment, { cause: { detail: 'The sandbox was not running.' }, ...spec })
        return
      }
      const changed = await changeSandbox(this.#machine, spec, assignment, running)
      this.#hold(sandboxId, { spec: changed, running: await pauseSandbox(this.#machine, sandboxId, running) })
    })
  }

  async stop(assignment: Assignment) {
    const { sandboxId, signal } = assignment
    if (signal === 'SIGKILL') this.cutShort(sandboxId)
    await this.#cuttable(sandboxId, (hurry) => this.#stopInLine(assignment, hurry))
  }

  archive(assignment: Assignment, onProgress: (progress: Progress) => void = () => undefined) {
    const { sandboxId } = assignment
    return this.#cuttable(sandboxId, async (signal) => {
      const before = this.#held.get(sandboxId)?.spec
      if (before?.status !== 'archived' || before.archive?.id !== assignment.archive?.id) {
        await this.#stopInLine(assignment, signal)
        signal.throwIfAborted()
        try {
          this.#hold(sandboxId, { spec: await archiveDisk(this.#machine, assignment, { signal, onProgress }) })
        } catch (error) {
          if (!(error instanceof ArchiveFailed) || signal.aborted) throw error
          this.#machine.log.warn({ err: error, sandboxId }, 'could not be archived')
          await this.#write(sandboxId, { assignment, status: 'stopped', refused: error.message })
          return
        }
      }
      const { spec } = this.#held.get(sandboxId)!
      if (spec.assignment.generation !== assignment.generation) await this.#write(sandboxId, { ...spec, assignment })
      if (spec.archive) await finishArchiving(this.#machine, sandboxId, spec.archive.id)
    })
  }

  destroy(sandboxId: string, withArchives?: 'with archives') {
    checkSandboxId(sandboxId)
    this.cutShort(sandboxId)
    const waiting = setInterval(() => this.#killAll(sandboxId), patienceMs)
    return this.#inLine
      .run(sandboxId, async () => {
        clearInterval(waiting)
        this.#notRunning(sandboxId)
        const slot = this.#held.get(sandboxId)?.running?.slot
        await destroySandbox(this.#machine, sandboxId, slot, withArchives !== undefined)
        this.#held.delete(sandboxId)
        this.#tellChange(sandboxId)
      })
      .finally(() => clearInterval(waiting))
  }

  /** What is being done to it may wait for a process inside that never answers. */
  #killAll(sandboxId: string) {
    cgroupOf(this.#machine, sandboxId)
      .kill()
      .catch((err: unknown) => this.#machine.log.warn({ err, sandboxId }, 'could not be ended before its turn'))
  }

  snapshot(sandboxId: string, image: string, otherBase?: string) {
    checkSandboxId(sandboxId)
    return this.#inLine.run(sandboxId, () =>
      makeTemplate(this.#machine, image, sandboxId, this.#held.get(sandboxId), otherBase),
    )
  }

  templates() {
    return listTemplates(this.#machine.pool)
  }

  template(image: string) {
    return findTemplate(this.#machine.pool, image)
  }

  async basesInUse(except?: string) {
    const below = [...this.#held.keys()].map((sandboxId) => this.imageOf(sandboxId))
    const bases = await listBases(this.#machine.pool, except)
    return new Set([...(await Promise.all(below)).filter((image) => image !== undefined), ...bases])
  }

  removeTemplate(image: string) {
    return this.#machine.pool.removeTemplate(image)
  }

  async measure(sandboxId: string) {
    const { spec, running } = this.#held.get(sandboxId) ?? {}
    return spec && running && this.#lookouts.meters.measure(spec.assignment)
  }

  memoryKills(sandboxId: string) {
    return this.#lookouts.memoryKills(sandboxId)
  }

  onChange(listener: (sandboxId: string) => void) {
    this.#watchers.add(listener)
    return () => void this.#watchers.delete(listener)
  }

  measureAll() {
    const running = [...this.#held.values()].filter(({ running: one }) => one !== undefined)
    return this.#lookouts.meters.measureAll(running.map(({ spec }) => spec.assignment))
  }

  onExit(listener: (sandboxId: string, cause: Cause) => void) {
    this.#listeners.push(listener)
  }

  onMishap(listener: (sandboxId: string, cause: Cause) => boolean) {
    this.#onMishap = listener
  }

  async close() {
    clearInterval(this.#owed)
    this.#lookouts.close()
    for (const controllers of this.#long.values()) for (const controller of controllers) controller.abort()
    await Promise.all([this.#machine.journal.settled(), this.#machine.pool.close()])
  }

  /** In line, with a signal for when somebody has asked for more than this meanwhile. */
  async #cuttable(sandboxId: string, work: (signal: AbortSignal) => Promise<void>) {
    const controller = new AbortController()
    const long = this.#long.get(sandboxId) ?? new Set()
    this.#long.set(sandboxId, long.add(controller))
    try {
      await this.#inLine.run(sandboxId, () => work(controller.signal))
    } finally {
      long.delete(controller)
      if (long.size === 0) this.#long.delete(sandboxId)
    }
  }

  cutShort(sandboxId: string) {
    for (const controller of this.#long.get(sandboxId) ?? []) controller.abort()
  }

  async #stopInLine(assignment: Assignment, hurry: AbortSignal) {
    const { sandboxId } = assignment
    const held = this.#held.get(sandboxId)
    if (held === undefined) throw new Error('The sandbox is not on this runner.')
    const { spec, running } = held
    if (running !== undefined) {
      this.#hold(sandboxId, { spec: await stopSandbox(this.#machine, assignment, running, hurry) })
      return
    }
    if (spec.status === 'archived') {
      await this.#write(sandboxId, {
        ...spec,
        assignment,
        refused: 'The sandbox is archived. Start it to have it back.',
      })
      return
    }
    // Nothing runs; what a failed start could not clear away goes now.
    if (spec.status === 'error') await clearSandbox(this.#machine, sandboxId, undefined)
    await this.#rest(assignment, spec)
  }

  /** Nothing of it runs; it only takes what is new in the assignment. */
  async #rest(assignment: Assignment, { assignment: before, cause }: Spec) {
    const { pool } = this.#machine
    const { sandboxId, diskGiB } = assignment
    if (before.diskGiB !== diskGiB && (await pool.exists(sandboxId))) await pool.limit(sandboxId, diskGiB)
    await this.#write(sandboxId, { assignment, status: 'stopped', ...(cause ? { cause } : {}) })
  }

  /** What could not be brought back is in its archive as it was. */
  async #stillArchived(assignment: Assignment, before: Spec | undefined, error: RestoreFailed) {
    const { sandboxId } = assignment
    this.#machine.log.warn({ err: error, sandboxId }, 'could not be restored')
    const { archive } = before ?? {}
    await this.#write(sandboxId, {
      assignment,
      status: 'archived',
      ...(archive ? { archive } : {}),
      refused: error.message,
    })
  }

  /** Writes the spec of a sandbox that does not run. */
  async #write(sandboxId: string, spec: Spec) {
    await this.#machine.journal.writeSpec(sandboxId, spec)
    this.#hold(sandboxId, { spec })
  }

  async #removeOwed() {
    await removeAllOwedArchives(this.#machine).catch((err: unknown) =>
      this.#machine.log.warn({ err }, 'archives that are owed could not be removed'),
    )
  }

  /** In the line of both, so that no verb of the parent's is under way; answers the image below it. */
  async #forkDisk(assignment: Assignment, parentId: string): Promise<string> {
    const { sandboxId, image } = assignment
    if (parentId === sandboxId) throw new NotRecoverable('A sandbox cannot be forked from itself.')
    const { pool } = this.#machine
    if (await pool.exists(sandboxId)) return (await pool.baseOf({ sandboxId })) ?? image
    return this.#inLine.run(parentId, () => forkDisk(this.#machine, assignment, parentId, this.#held.get(parentId)))
  }

  #hold(sandboxId: string, held: Adopted) {
    const { spec, running } = held
    this.#held.set(sandboxId, held)
    if (running === undefined) this.#notRunning(sandboxId)
    else this.#lookouts.begin(sandboxId, spec.assignment, running)
    this.#tellChange(sandboxId)
  }

  #tellChange(sandboxId: string) {
    for (const watcher of this.#watchers) watcher(sandboxId)
  }

  #notRunning(sandboxId: string) {
    this.#lookouts.end(sandboxId)
    this.#guilty.delete(sandboxId)
    this.#images.delete(sandboxId)
  }

  #punish(sandboxId: string, evidence: Evidence) {
    this.#guilty.set(sandboxId, causeOfTooMuch(evidence))
    this.#killAll(sandboxId)
  }

  /** In line, so that no verb is under way. A verb that takes long is not waited for, and nothing is held then. */
  #holdStill(sandboxId: string, release: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const late = AbortSignal.any([release, AbortSignal.timeout(patienceMs)])
      late.addEventListener('abort', () => resolve(false), { once: true })
      const untilReleased = () =>
        new Promise<void>((done) => {
          resolve(true)
          if (release.aborted) return done()
          release.addEventListener('abort', () => done(), { once: true })
        })
      this.#inLine
        .run(sandboxId, async () => {
          const { running } = this.#held.get(sandboxId) ?? {}
          if (late.aborted || running === undefined) return resolve(false)
          await whileHeldStill(this.#machine, sandboxId, running, untilReleased)
        })
        .catch((err: unknown) => {
          this.#machine.log.warn({ err, sandboxId }, 'could not be held still')
          resolve(false)
        })
    })
  }

  #killed(sandboxId: string, kills: number) {
    const spec = this.#held.get(sandboxId)?.spec
    if (spec === undefined) return true
    this.#machine.log.info({ sandboxId, kills }, 'ran out of memory and lives on')
    return this.#onMishap(sandboxId, causeOfKills(kills, spec.assignment.memoryGiB))
  }

  #refused(sandboxId: string) {
    const spec = this.#held.get(sandboxId)?.spec
    if (spec === undefined) return true
    const most = pidsLimit(spec.assignment)
    this.#machine.log.info({ sandboxId, most }, 'has as many processes as it may')
    return this.#onMishap(sandboxId, causeOfRefusals(most))
  }

  async #failed(sandboxId: string, assignment: Assignment, error: unknown) {
    const { journal, log } = this.#machine
    const spec: Spec = { assignment, status: 'error', errorReason: reasonOf(error) }
    log.error({ err: error, sandboxId }, 'could not be started')
    this.#hold(sandboxId, { spec })
    await journal
      .writeSpec(sandboxId, spec)
      .catch((err: unknown) => log.error({ err, sandboxId }, 'the journal could not be written'))
  }

  /** Whether there is nothing to change any more, as it has ended by itself. Of what is warm nobody had anything. */
  async #hasEnded(assignment: Assignment): Promise<boolean> {
    const { sandboxId, isRunning } = assignment
    const { spec, running } = this.#held.get(sandboxId) ?? {}
    if (!isRunning || !spec || !running || spec.assignment.isWarm || isAlive(running.init)) return false
    await this.#ended(sandboxId)
    const ended = this.#held.get(sandboxId)?.spec
    if (ended?.status !== 'stopped') throw new Error('The sandbox has ended, and could not be cleared away yet.')
    await this.#write(sandboxId, { ...ended, assignment })
    return true
  }

  /** The first process of a sandbox has ended. Only its queue of verbs knows whether that was asked for meanwhile. */
  async #ended(sandboxId: string) {
    const { spec, running } = this.#held.get(sandboxId) ?? {}
    if (!spec || !running || isAlive(running.init)) return
    const { assignment } = spec
    try {
      const run = { bootId: this.#machine.bootId, slot: running.slot.name, ...running.init }
      const cause = this.#guilty.get(sandboxId) ?? (await causeOfEnd(this.#machine, assignment.memoryGiB, run))
      await clearSandbox(this.#machine, sandboxId, running.slot)
      const stopped: Spec = { assignment, status: 'stopped', cause }
      await this.#machine.journal.writeSpec(sandboxId, stopped)
      this.#hold(sandboxId, { spec: stopped })
      this.#machine.log.info({ sandboxId, cause }, 'ended by itself')
      for (const listener of this.#listeners) listener(sandboxId, cause)
    } catch (error) {
      // Tried again at the next look.
      this.#machine.log.error({ err: error, sandboxId }, 'has ended and could not be cleared away')
      this.#lookouts.awaitEnd(sandboxId, running.init)
    }
  }
}

/** Control's word for it, or else what was written down here when nobody heard of it. */
const archiveOf = ({ archive }: Assignment, spec: Spec | undefined): ArchiveRef | undefined =>
  archive?.sha256 !== undefined || spec?.status !== 'archived' ? archive : spec.archive
