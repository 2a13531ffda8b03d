// Announces changes of sandboxes to the reconciler, to waiting callers and to event sockets, in all control processes.
// Announcements can be lost, so every listener also checks the database: waiters poll, the reconciler sweeps.
import { EventEmitter } from 'node:events'
import type { Database } from '#src/control/storage/database.ts'
import { Peers } from '#src/control/storage/peers.ts'
import type { Logger } from '#src/kit/log.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import { isClaim } from './lifecycle.ts'
import type { SandboxRow } from './sandbox.ts'

export type Change = {
  sandboxId: string
  organizationId: string
  runnerId: string | null
  from: SandboxState | null
  to: SandboxState
  /** The sandbox's row as it was just written. Present if this process made the change. */
  row?: SandboxRow
}

/** A sandbox whose state is unchanged, but whose runner needs a new assignment. */
type Renewal = Pick<Change, 'sandboxId' | 'row'> & { runnerId: string }

/**
 * A process of a sandbox was killed for want of memory, and the sandbox lives on. `eventId` is the event in its
 * timeline.
 */
export type Mishap = { sandboxId: string; organizationId: string; eventId: number }

const takenBy = (runnerId: string, sandboxId: string, generation: number) => `${runnerId} ${sandboxId} ${generation}`

/**
 * Maximum number of rows that a process keeps in memory, for sandboxes under way. Other rows are read from the database when a
 * runner reports.
 */
const mostUnderWay = 10_000

export class ChangeFeed {
  readonly #emitter = new EventEmitter().setMaxListeners(0)
  readonly #underWay = new Map<string, SandboxRow>()
  /**
   * Warm sandboxes that this process gave to callers, until their runners confirm the claim. The value names runner,
   * sandbox and generation.
   */
  readonly #claimed = new Map<string, string>()
  readonly #log: Logger
  #peers: Peers<Change | Renewal | Mishap> | undefined

  constructor(log: Logger) {
    this.#log = log
  }

  /** Connects to the other control processes: each process announces its changes to all other processes. */
  async join(database: Pick<Database, 'sql' | 'listen'>): Promise<void> {
    const onNews = (news: Change | Renewal | Mishap) => {
      if ('eventId' in news) return void this.#emitter.emit('mishap', news)
      this.#forget(news.sandboxId)
      if ('to' in news) this.#tell(news)
      else this.#emitter.emit('renewal', news)
    }
    this.#peers = await Peers.open({ database, channel: 'sandbox_changes', log: this.#log, onNews })
  }

  /** Removes all listeners. Waiting callers are woken, so that they read the database. */
  close(): void {
    this.#peers?.close()
    for (const event of ['change', 'renewal', 'mishap']) this.#emitter.removeAllListeners(event)
    for (const name of this.#emitter.eventNames()) this.#emitter.emit(name)
  }

  announce(from: SandboxState | null, row: SandboxRow): void {
    const { id: sandboxId, organization_id: organizationId, runner_id: runnerId, state: to } = row
    this.#forget(sandboxId)
    if (row.stuck_at !== null && this.#underWay.size < mostUnderWay) this.#underWay.set(sandboxId, row)
    if (to === 'started' && isClaim(from, to))
      this.#claimed.set(sandboxId, takenBy(runnerId ?? '', sandboxId, row.generation))
    const change = { sandboxId, organizationId, runnerId, from, to }
    this.#tell({ ...change, row })
    this.#peers?.tell(change)
  }

  tellMishap(mishap: Mishap): void {
    this.#emitter.emit('mishap', mishap)
    this.#peers?.tell(mishap)
  }

  hearMishaps(listener: (mishap: Mishap) => void): () => void {
    this.#emitter.on('mishap', listener)
    return () => this.#emitter.off('mishap', listener)
  }

  /** Asks the control process that has the runner's link to send the sandbox's assignment again. */
  renew(row: SandboxRow): void {
    const { id: sandboxId, runner_id: runnerId } = row
    this.#forget(sandboxId)
    if (runnerId === null) return
    this.#emitter.emit('renewal', { sandboxId, runnerId, row } satisfies Renewal)
    this.#peers?.tell({ sandboxId, runnerId })
  }

  /**
   * Returns the row that this process last wrote for a sandbox under way. Another process may have written a newer row, so a write
   * must check the version.
   */
  findUnderWay(sandboxId: string): SandboxRow | undefined {
    return this.#underWay.get(sandboxId)
  }

  /** Calls `listener` for every change. Returns a function that removes the listener. */
  hear(listener: (change: Change) => void): () => void {
    this.#emitter.on('change', listener)
    return () => this.#emitter.off('change', listener)
  }

  hearRenewals(listener: (renewal: Renewal) => void): () => void {
    this.#emitter.on('renewal', listener)
    return () => this.#emitter.off('renewal', listener)
  }

  /**
   * Resolves at the next change of a sandbox, or after `timeoutMs`. Returns the sandbox's row, if this process made
   * the change.
   */
  next(sandboxId: string, timeoutMs: number): Promise<SandboxRow | undefined> {
    return new Promise((resolve) => {
      const done = (row?: SandboxRow) => {
        clearTimeout(timer)
        this.#emitter.off(sandboxId, done)
        resolve(row)
      }
      const timer = setTimeout(() => done(), timeoutMs)
      this.#emitter.on(sandboxId, done)
    })
  }

  /**
   * Called when a runner has applied `generation` of a sandbox. Wakes the callers of `taken`. Returns true if this process claimed
   * the sandbox with this generation. A second call for the same claim returns false.
   */
  tellTaken(runnerId: string, sandboxId: string, generation: number): boolean {
    const taken = takenBy(runnerId, sandboxId, generation)
    this.#emitter.emit(taken)
    return this.#claimed.get(sandboxId) === taken && this.#claimed.delete(sandboxId)
  }

  /**
   * Waits until the runner has applied the current generation, until the row changes, or for `timeoutMs`. Returns the row if this
   * process changed the row.
   */
  async taken(sandbox: SandboxRow, timeoutMs: number): Promise<SandboxRow | undefined> {
    const event = takenBy(sandbox.runner_id ?? '', sandbox.id, sandbox.generation)
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const isTaken = () => resolve(undefined)
    this.#emitter.once(event, isTaken)
    try {
      return await Promise.race([promise, this.next(sandbox.id, timeoutMs)])
    } finally {
      this.#emitter.off(event, isTaken)
    }
  }

  #forget(sandboxId: string): void {
    this.#underWay.delete(sandboxId)
    this.#claimed.delete(sandboxId)
  }

  #tell(change: Change): void {
    // If one listener fails, all other listeners are still called.
    for (const listener of this.#emitter.listeners('change')) {
      try {
        listener(change)
      } catch (error) {
        this.#log.error({ err: error, sandboxId: change.sandboxId }, 'a listener of sandbox changes failed')
      }
    }
    this.#emitter.emit(change.sandboxId, change.row)
  }
}
