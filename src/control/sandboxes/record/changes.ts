// Who hears that a sandbox has changed: the reconciler, callers that wait, and sockets that watch.
//
// A change made here is told here at once, and to other control processes when it is written. Being told is never the
// only way to find out: whoever waits looks again, whoever reconciles sweeps.
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
  /** The row just written, where the change was made in this process. */
  row?: SandboxRow
}

/** A sandbox whose state is the same, and whose runner must hear again what is wanted. */
type Renewal = Pick<Change, 'sandboxId' | 'row'> & { runnerId: string }

/** Something that happened to a sandbox and left its state as it was; `eventId` is its event in the timeline. */
export type Mishap = { sandboxId: string; organizationId: string; eventId: number }

const takenBy = (runnerId: string, sandboxId: string, generation: number) => `${runnerId} ${sandboxId} ${generation}`

/** More are looked up when their runner reports. */
const mostUnderWay = 10_000

export class ChangeFeed {
  readonly #emitter = new EventEmitter().setMaxListeners(0)
  readonly #underWay = new Map<string, SandboxRow>()
  /** Claimed here, of which nothing is left to be said but that their runners have taken it. */
  readonly #claimed = new Map<string, string>()
  readonly #log: Logger
  #peers: Peers<Change | Renewal | Mishap> | undefined

  constructor(log: Logger) {
    this.#log = log
  }

  /** Starts to hear the other control processes, and to tell them. */
  async join(database: Pick<Database, 'sql' | 'listen'>): Promise<void> {
    const onNews = (news: Change | Renewal | Mishap) => {
      if ('eventId' in news) return void this.#emitter.emit('mishap', news)
      this.#forget(news.sandboxId)
      if ('to' in news) this.#tell(news)
      else this.#emitter.emit('renewal', news)
    }
    this.#peers = await Peers.open({ database, channel: 'sandbox_changes', log: this.#log, onNews })
  }

  /** Nobody hears anything from here on; who waits is woken and looks. */
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

  /** To whichever process has the link of its runner. */
  renew(row: SandboxRow): void {
    const { id: sandboxId, runner_id: runnerId } = row
    this.#forget(sandboxId)
    if (runnerId === null) return
    this.#emitter.emit('renewal', { sandboxId, runnerId, row } satisfies Renewal)
    this.#peers?.tell({ sandboxId, runnerId })
  }

  /**
   * A sandbox that something is being done to, as it was written here. Somebody else may have written it since, so what
   * follows from this counts only if it is still of this version.
   */
  findUnderWay(sandboxId: string): SandboxRow | undefined {
    return this.#underWay.get(sandboxId)
  }

  /** Calls `listener` for every change until the answer is called. */
  hear(listener: (change: Change) => void): () => void {
    this.#emitter.on('change', listener)
    return () => this.#emitter.off('change', listener)
  }

  hearRenewals(listener: (renewal: Renewal) => void): () => void {
    this.#emitter.on('renewal', listener)
    return () => this.#emitter.off('renewal', listener)
  }

  /** Resolves at the next change of one sandbox, with its row where we have it, or after `timeoutMs`. */
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

  /** A runner has what control wants of a sandbox under this generation. Answers whether that was all there was to hear of it. */
  tellTaken(runnerId: string, sandboxId: string, generation: number): boolean {
    const taken = takenBy(runnerId, sandboxId, generation)
    this.#emitter.emit(taken)
    return this.#claimed.get(sandboxId) === taken && this.#claimed.delete(sandboxId)
  }

  /** Resolves when the runner of a sandbox has taken it as it is, with the row of its next change if that comes first, or after `timeoutMs`. */
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
    // A listener's failure must not keep the others from hearing.
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
