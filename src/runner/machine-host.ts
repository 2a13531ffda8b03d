// Carries out the verbs (start, stop, pause and others) for the sandboxes of this host. After `close`, the sandboxes keep running,
// and the next runner adopts them.
import { isAlive } from '#src/kit/process-identity.ts'
import { untilAborted } from '#src/kit/until-aborted.ts'
import type {
  ArchiveRef,
  Assignment,
  Cause,
  Progress,
  RunnerCapabilities,
  VolumeAssignment,
} from '#src/wire/runner-link.ts'
import { ArchiveFailed } from './archive/failed.ts'
import { removeArchives } from './archive/remove.ts'
import { extentOf } from './archive/tar.ts'
import { pidsLimit } from './cgroup/sandbox-limits.ts'
import type { HeldSandbox, Host } from './host.ts'
import type { Evidence } from './kernel-memory/watch.ts'
import { expectStart } from './launch.ts'
import type { Spec } from './machine/journal.ts'
import { cgroupOf, FaultInside, type Machine, NotRecoverable, reasonOf } from './machine/machine.ts'
import { capabilitiesOf, type HostParts, openMachine } from './machine/open-machine.ts'
import { checkSandboxId, socketOf } from './machine/places.ts'
import { findTemplate, listBases, listTemplates } from './overlay/templates.ts'
import { bringTemplate, packTemplate } from './overlay/travel.ts'
import { VerbQueue } from './verb-queue.ts'
import { type Adopted, adoptSandboxes } from './verbs/adopt.ts'
import { archiveDisk, checkReturns, finishArchiving, type Transfer } from './verbs/archive.ts'
import { changeSandbox } from './verbs/change.ts'
import { clearSandbox } from './verbs/clear.ts'
import { destroySandbox, removeAllOwedArchives } from './verbs/destroy.ts'
import { runFirstCommand } from './verbs/first-command.ts'
import { forkDisk } from './verbs/fork.ts'
import { pauseSandbox, resumeSandbox, whileHeldStill } from './verbs/pause.ts'
import { saveDisk } from './verbs/save.ts'
import { makeTemplate } from './verbs/snapshot.ts'
import { RestoreFailed, startSandbox } from './verbs/start.ts'
import { stopSandbox } from './verbs/stop.ts'
import { causeOfEnd, causeOfKills, causeOfRefusals, causeOfTooMuch } from './watching/causes.ts'
import { Lookouts } from './watching/lookouts.ts'

export const openHost = async (parts: HostParts): Promise<Host> => {
  const machine = await openMachine(parts)
  return new MachineHost(parts.instance, machine, await adoptSandboxes(machine))
}

/** Pause in milliseconds between attempts to remove archives of destroyed sandboxes, if the object store failed at the destroy. */
const owedEveryMs = 10 * 60_000

/**
 * A destroy waits this long, in milliseconds, for the sandbox's running verb. If the verb still runs then, the destroy kills the
 * sandbox's processes, and repeats this at the same interval until the verb ends. A measurement of kernel memory waits this long
 * for the verb, and then omits the sandbox.
 */
const patienceMs = 1000

class MachineHost implements Host {
  readonly instance: string
  readonly capabilities: RunnerCapabilities
  readonly #machine: Machine
  readonly #held: Map<string, Adopted>
  /** Base image of each running sandbox, by sandbox id. An entry is read from the disk when first needed. */
  readonly #images = new Map<string, string>()
  readonly #verbs = new VerbQueue()
  readonly #listeners: ((sandboxId: string, cause: Cause) => void)[] = []
  readonly #lookouts: Lookouts
  /**
   * Sandboxes that the runner has killed because they harmed the host. The cause is reported when the runner notices the sandbox's
   * end.
   */
  readonly #guilty = new Map<string, Cause>()
  #onMishap: (sandboxId: string, cause: Cause) => boolean = () => false
  readonly #watchers = new Set<(sandboxId: string) => void>()

  readonly #owed: NodeJS.Timeout

  constructor(instance: string, machine: Machine, held: Map<string, Adopted>) {
    this.instance = instance
    this.capabilities = capabilitiesOf(machine)
    this.#machine = machine
    this.#lookouts = new Lookouts(machine, {
      onEnd: (sandboxId) => void this.#verbs.run(sandboxId, () => this.#ended(sandboxId)),
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
    const found = (await this.#machine.pool.baseOf({ sandboxId })) ?? spec.base ?? spec.assignment.image
    if (this.#held.get(sandboxId)?.running) this.#images.set(sandboxId, found)
    return found
  }

  copyParent(assignment: Assignment) {
    const { sandboxId, forkOf } = assignment
    checkSandboxId(sandboxId)
    // During the copy, no verb of the fork or the parent runs. The copy is queued among the fork's verbs here, and among the
    // parent's verbs in `#forkDisk`.
    return this.#verbs.run(sandboxId, async () => {
      if (forkOf !== undefined) await this.#forkDisk(assignment, forkOf)
    })
  }

  start(assignment: Assignment, onProgress: (progress: Progress) => void = () => undefined) {
    const { sandboxId } = assignment
    checkSandboxId(sandboxId)
    return this.#verbs.runCuttable(sandboxId, async (signal) => {
      if (await this.#hasEnded(assignment)) return
      const { spec, running } = this.#held.get(sandboxId) ?? {}
      if (spec && running && isAlive(running.init)) {
        const changed = await changeSandbox(this.#machine, spec, assignment, running)
        this.#hold(sandboxId, { spec: changed, running: await resumeSandbox(this.#machine, sandboxId, running) })
        return
      }
      expectStart()
      try {
        // If the sandbox has just ended by itself, or its last start has failed, remove what is left of the sandbox on this host.
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
        if (assignment.isWarm) await Promise.all([runFirstCommand(this.#machine, assignment), this.imageOf(sandboxId)])
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
    return this.#verbs.run(sandboxId, async () => {
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
    await this.#verbs.runCuttable(sandboxId, (hurry) => this.#stopInLine(assignment, hurry))
  }

  archive(assignment: Assignment, onProgress: (progress: Progress) => void = () => undefined) {
    const { sandboxId } = assignment
    return this.#verbs.runCuttable(sandboxId, async (signal) => {
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

  save({ sandboxId, save: wanted }: Assignment) {
    return this.#verbs.runInBackground(sandboxId, async (signal) => {
      const { spec, running } = this.#held.get(sandboxId) ?? {}
      if (signal.aborted || wanted === undefined || spec?.status !== 'stopped' || running !== undefined)
        return undefined
      if (spec.saved?.id === wanted.id) return spec.saved
      try {
        const saved = await saveDisk(this.#machine, spec.assignment, wanted.id, signal)
        await this.#write(sandboxId, { ...spec, saved })
        return saved
      } catch (error) {
        if (signal.aborted) return undefined
        throw error
      }
    })
  }

  destroy(sandboxId: string, withArchives?: 'with archives') {
    checkSandboxId(sandboxId)
    this.cutShort(sandboxId)
    const waiting = setInterval(() => this.#killAll(sandboxId), patienceMs)
    return this.#verbs
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

  /** Kills all processes of a sandbox without waiting for the running verb. The verb may wait for a process that never answers. */
  #killAll(sandboxId: string) {
    cgroupOf(this.#machine, sandboxId)
      .kill()
      .catch((err: unknown) => this.#machine.log.warn({ err, sandboxId }, 'could not be ended before its turn'))
  }

  snapshot(sandboxId: string, image: string, otherBase?: string) {
    checkSandboxId(sandboxId)
    return this.#verbs.run(sandboxId, () =>
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

  async storeTemplate(image: string, signal: AbortSignal) {
    const { pool, images, archiveStore: store } = this.#machine
    checkReturns(await extentOf(pool.diskOfTemplate(image)))
    const below = (await pool.baseOf({ template: image })) ?? image
    const base = await untilAborted(images.identityOf?.(below) ?? Promise.resolve(undefined), signal)
    const { sha256, base: name } = await packTemplate({ pool, store, image, base, signal })
    return { sha256, ...(name === undefined ? {} : { base: name }) }
  }

  bringTemplate(
    image: string,
    { sha256, maxGiB }: { sha256: string; maxGiB: number },
    { signal, onProgress }: Transfer,
  ) {
    const { pool, launcher, images, archiveStore: store } = this.#machine
    const { withBase } = images
    return bringTemplate({ pool, launcher, store, image, withBase, signal }, sha256, maxGiB, onProgress)
  }

  removeStoredTemplate(image: string) {
    return removeArchives({ store: this.#machine.archiveStore, image })
  }

  lastUseOfTemplate(image: string) {
    return this.#machine.pool.lastUseOfTemplate(image)
  }

  markTemplateUsed(image: string) {
    return this.#machine.pool.markTemplateUsed(image)
  }

  removeVolume(volume: Pick<VolumeAssignment, 'volumeId' | 'driver'>) {
    return this.#machine.volumes.remove(volume)
  }

  room() {
    return this.#machine.pool.room()
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
    this.#verbs.cutAllShort()
    await Promise.all([this.#machine.journal.settled(), this.#machine.pool.close()])
  }

  cutShort(sandboxId: string) {
    this.#verbs.cutShort(sandboxId)
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
        refused: 'The sandbox is archived. Start it to restore its disk.',
      })
      return
    }
    // No process of this sandbox runs. If the sandbox's last start failed, remove what that start has left on the host.
    if (spec.status === 'error') await clearSandbox(this.#machine, sandboxId, undefined)
    await this.#rest(assignment, spec)
  }

  /** Applies an assignment to a sandbox that does not run: sets the size limit of its disk, and writes the journal. */
  async #rest(assignment: Assignment, { assignment: before, cause }: Spec) {
    const { pool } = this.#machine
    const { sandboxId, diskGiB } = assignment
    if (before.diskGiB !== diskGiB && (await pool.exists(sandboxId))) await pool.limit(sandboxId, diskGiB)
    await this.#write(sandboxId, { assignment, status: 'stopped', ...(cause ? { cause } : {}) })
  }

  /** Records that the disk could not be restored from its archive. The archive is unchanged, so the sandbox stays archived. */
  async #stillArchived(assignment: Assignment, before: Spec | undefined, error: RestoreFailed) {
    const { sandboxId } = assignment
    this.#machine.log.warn({ err: error, sandboxId }, 'could not be restored')
    const { archive, base } = before ?? {}
    await this.#write(sandboxId, {
      assignment,
      status: 'archived',
      ...(archive ? { archive } : {}),
      ...(base === undefined ? {} : { base }),
      refused: error.message,
    })
  }

  /** Writes to the journal the spec of a sandbox that does not run. */
  async #write(sandboxId: string, spec: Spec) {
    await this.#machine.journal.writeSpec(sandboxId, spec)
    this.#hold(sandboxId, { spec })
  }

  async #removeOwed() {
    await removeAllOwedArchives(this.#machine).catch((err: unknown) =>
      this.#machine.log.warn({ err }, 'archives that are owed could not be removed'),
    )
  }

  /** Copies the parent's disk for a fork, and returns the base image of the copy. No verb of either sandbox runs meanwhile. */
  async #forkDisk(assignment: Assignment, parentId: string): Promise<string> {
    const { sandboxId, image } = assignment
    if (parentId === sandboxId) throw new NotRecoverable('A sandbox cannot be forked from itself.')
    const { pool } = this.#machine
    if (await pool.exists(sandboxId)) return (await pool.baseOf({ sandboxId })) ?? image
    return this.#verbs.run(parentId, () => forkDisk(this.#machine, assignment, parentId, this.#held.get(parentId)))
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

  /**
   * Freezes a sandbox until `release` aborts. Verbs for the sandbox wait until then. Returns false if a running verb takes longer
   * than `patienceMs`.
   */
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
      this.#verbs
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
    log[error instanceof FaultInside ? 'info' : 'error']({ err: error, sandboxId }, 'could not be started')
    this.#hold(sandboxId, { spec })
    await journal
      .writeSpec(sandboxId, spec)
      .catch((err: unknown) => log.error({ err, sandboxId }, 'the journal could not be written'))
  }

  /**
   * If the sandbox has ended by itself and must stay stopped, writes the journal and returns true. Returns false for a warm
   * sandbox, which is started again.
   */
  async #hasEnded(assignment: Assignment): Promise<boolean> {
    const { sandboxId, isRunning } = assignment
    const { spec, running } = this.#held.get(sandboxId) ?? {}
    if (!isRunning || !spec || !running || spec.assignment.isWarm || isAlive(running.init)) return false
    await this.#ended(sandboxId)
    const ended = this.#held.get(sandboxId)?.spec
    if (ended?.status !== 'stopped') throw new Error('The sandbox has ended, but could not be cleaned up yet.')
    await this.#write(sandboxId, { ...ended, assignment })
    return true
  }

  /** Handles the end of a sandbox's first process. Waits for a running verb first, because a stop ends that process on purpose. */
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
      // The error is only logged, because the next check of this sandbox (watching/lookouts.ts) reports the end again.
      this.#machine.log.error({ err: error, sandboxId }, 'has ended and could not be cleared away')
      this.#lookouts.awaitEnd(sandboxId, running.init)
    }
  }
}

/**
 * Returns the archive that control names, or else the archive in the journal, because the report about that archive may be lost.
 */
const archiveOf = ({ archive }: Assignment, spec: Spec | undefined): ArchiveRef | undefined =>
  archive?.sha256 !== undefined || spec?.status !== 'archived' ? archive : spec.archive
