// For tests: a host in memory. A test can delay verbs, make them fail, and end a sandbox.

import type { WatchedHost } from '#src/runner/gate-link/watch.ts'
import type { KeptHost } from '#src/runner/keeping/keeper.ts'
import type { MemoryKillsHere } from '#src/wire/gate-link.ts'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import type { Assignment, Cause, Progress, WrittenArchive } from '#src/wire/runner-link.ts'
import type { HeldSandbox } from '../host.ts'

type Verb = 'save' | 'copy' | 'start' | 'pause' | 'stop' | 'archive' | 'destroy'

export class SimulatedHost implements KeptHost, WatchedHost {
  /** Each verb that has begun, in the form `start box 3`: verb, sandbox, generation. */
  readonly asked: string[] = []
  /** Ids of the sandboxes for which `cutShort` was called. */
  readonly cut: string[] = []
  readonly held = new Map<string, HeldSandbox>()
  /** Called before a verb does anything. A test may wait or throw here. */
  before: (verb: Verb, sandboxId: string) => Promise<void> | void = () => undefined
  /** If set, the next start, pause or archive is refused for this reason, and leaves the sandbox as it is. */
  refuses: string | undefined
  running = 0
  mostRunning = 0
  readonly #watchers = new Set<(sandboxId: string) => void>()
  readonly #listeners: ((sandboxId: string, cause: Cause) => void)[] = []

  list() {
    return [...this.held.values()]
  }

  get(sandboxId: string) {
    return this.held.get(sandboxId)
  }

  async imageOf(sandboxId: string) {
    return this.held.get(sandboxId)?.assignment.image
  }

  async measure(): Promise<MeterReading | undefined> {
    return undefined
  }

  memoryKills(): MemoryKillsHere {
    return { count: 0, spans: [] }
  }

  onChange(listener: (sandboxId: string) => void) {
    this.#watchers.add(listener)
    return () => void this.#watchers.delete(listener)
  }

  copyParent({ sandboxId, generation, forkOf }: Assignment) {
    return this.#perform('copy', sandboxId, generation, () => {
      if (!this.held.has(forkOf ?? '')) throw new Error('The sandbox that was to be forked is gone.')
    })
  }

  start(assignment: Assignment) {
    return this.#perform('start', assignment.sandboxId, assignment.generation, () => this.hold(assignment, 'started'))
  }

  stop(assignment: Assignment) {
    return this.#perform('stop', assignment.sandboxId, assignment.generation, () => {
      if (!this.held.has(assignment.sandboxId)) throw new Error('The sandbox is not on this runner.')
      const { refuses } = this
      this.refuses = undefined
      this.hold(assignment, 'stopped')
      this.refuses = refuses
    })
  }

  pause(assignment: Assignment) {
    return this.#perform('pause', assignment.sandboxId, assignment.generation, () => this.hold(assignment, 'paused'))
  }

  archive(assignment: Assignment, onProgress: (progress: Progress) => void) {
    const { sandboxId, generation } = assignment
    return this.#perform('archive', sandboxId, generation, () => {
      for (const percent of [10, 20]) onProgress({ step: 'archiving', percent })
      this.hold(assignment, this.refuses === undefined ? 'archived' : 'stopped')
    })
  }

  async save({ sandboxId, generation, save }: Assignment) {
    let saved: WrittenArchive | undefined
    await this.#perform('save', sandboxId, generation, () => {
      if (save !== undefined && this.held.get(sandboxId)?.status === 'stopped')
        saved = { id: save.id, sha256: 'a'.repeat(64), bytes: 2, storedBytes: 1 }
    })
    return saved
  }

  destroy(sandboxId: string, withArchives?: 'with archives') {
    return this.#perform('destroy', [sandboxId, withArchives].filter(Boolean).join(' '), undefined, () =>
      this.forget(sandboxId),
    )
  }

  cutShort(sandboxId: string) {
    this.cut.push(sandboxId)
  }

  onExit(listener: (sandboxId: string, cause: Cause) => void) {
    this.#listeners.push(listener)
  }

  hold(assignment: Assignment, status: HeldSandbox['status'], cause?: Cause) {
    const { sandboxId: id } = assignment
    const refused = this.refuses
    this.refuses = undefined
    this.held.set(id, {
      id,
      assignment,
      status,
      socketPath: `/nowhere/${id}`,
      ...(cause ? { cause } : {}),
      ...(refused ? { refused } : {}),
    })
    this.#tellChange(id)
  }

  endByItself(sandboxId: string, cause: Cause) {
    this.hold(this.held.get(sandboxId)!.assignment, 'stopped', cause)
    for (const listener of this.#listeners) listener(sandboxId, cause)
  }

  /** Makes the host forget a sandbox, as if it had been destroyed. */
  forget(sandboxId: string) {
    this.held.delete(sandboxId)
    this.#tellChange(sandboxId)
  }

  #tellChange(sandboxId: string) {
    for (const watcher of this.#watchers) watcher(sandboxId)
  }

  async #perform(verb: Verb, sandboxId: string, generation: number | undefined, act: () => void) {
    this.asked.push([verb, sandboxId, generation].filter((word) => word !== undefined).join(' '))
    this.running += 1
    this.mostRunning = Math.max(this.mostRunning, this.running)
    try {
      await this.before(verb, sandboxId)
      act()
    } finally {
      this.running -= 1
    }
  }
}

export const assigned = (sandboxId: string, generation: number, changes: Partial<Assignment> = {}): Assignment => ({
  sandboxId,
  organizationId: 'org',
  regionId: 'region',
  name: sandboxId,
  generation,
  target: 'started',
  signal: 'SIGTERM',
  image: 'default',
  snapshot: 'default',
  user: 'daytona',
  env: {},
  language: 'python',
  cpu: 1,
  memoryGiB: 1,
  diskGiB: 3,
  network: { blockAll: false, allowList: null },
  ...changes,
})
