// Decides when verbs run: how many run at a time, and what must happen before a verb. A verb that waits for another sandbox does
// not count towards the limit of its lane.
import { FairQueue } from '#src/kit/queue.ts'
import type { Assignment, Target } from '#src/wire/runner-link.ts'
import type { Host } from '../host.ts'

export const verbTo = {
  started: 'start',
  paused: 'pause',
  stopped: 'stop',
  archived: 'archive',
  destroyed: 'destroy',
} as const

export type Verb = (typeof verbTo)[Target]

/**
 * Limits of verbs that run at the same time. Stops mostly wait, so there may be more of them. Archives and restores have a
 * limit of their own each, because they move whole disks. An archive must not delay a restore, and neither may delay other
 * verbs.
 */
export type AtOnce = { work: number; stops: number; transfers: number }

/** True for a fork whose disk must still be copied from its parent's disk. */
export const isFork = (assignment: Assignment): assignment is Assignment & { forkOf: string } =>
  assignment.target === 'started' && assignment.isNew === true && assignment.forkOf !== undefined

/** Makes a lane of which one organization may use only a share, so that its slow verbs do not delay other organizations. */
const shared = (atOnce: number, share: number) => new FairQueue({ atOnce, ofOne: Math.ceil(atOnce * share) })

type TurnsHost = Pick<Host, 'get' | 'copyParent' | 'stop' | 'cutShort'>

export class VerbLanes {
  readonly #host: TurnsHost
  readonly #work: FairQueue
  readonly #destroys: FairQueue
  readonly #stops: FairQueue
  readonly #archives: FairQueue
  readonly #restores: FairQueue
  /**
   * Lane for copies of disks. Each parent is copied for one fork at a time, because a copy waits for the parent's verb under way.
   */
  readonly #forks: FairQueue
  /** Copies under way or queued, by the parent's id. */
  readonly #copies = new Map<string, Set<Promise<void>>>()

  constructor(host: TurnsHost, { work, stops, transfers }: AtOnce = { work: 8, stops: 64, transfers: 4 }) {
    this.#host = host
    this.#work = shared(work, 0.75)
    this.#destroys = shared(work, 0.75)
    this.#stops = shared(stops, 0.75)
    this.#archives = shared(transfers, 0.5)
    this.#restores = shared(transfers, 0.5)
    this.#forks = new FairQueue({ atOnce: work, ofOne: 1 })
  }

  /**
   * Queues `work`, which must not reject. First, without a lane, the preparation of the verb runs, as long as `isWanted` is true.
   * Then `work` waits for its lane. `work` itself has to check whether it is still wanted.
   */
  take(verb: Verb, assignment: Assignment, isWanted: () => boolean, work: () => Promise<void>): void {
    // A destroy does not wait for the sandbox's verb under way but interrupts it: that verb may occupy the lane that the destroy
    // needs.
    if (verb === 'destroy') this.#host.cutShort(assignment.sandboxId)
    const begin = () => this.#lanesOf(verb, assignment).run(work, { owner: assignment.organizationId })
    const first = this.#comesFirst(verb, assignment, isWanted)
    void (first === undefined ? begin() : first.then(begin))
  }

  /** Runs the removal of a sandbox that control does not list. */
  async remove(work: () => Promise<void>): Promise<void> {
    await this.#work.run(work)
  }

  #lanesOf(verb: Verb, { sandboxId, archive }: Assignment): FairQueue {
    if (verb === 'stop') return this.#stops
    if (verb === 'destroy') return this.#destroys
    if (verb === 'archive') return this.#archives
    const status = this.#host.get(sandboxId)?.status ?? 'archived'
    const isRestore = verb === 'start' && status === 'archived' && archive?.sha256 !== undefined
    return isRestore ? this.#restores : this.#work
  }

  /**
   * Starts the preparation of a verb, such as the copy of a parent's disk; undefined if the verb needs none. Never rejects:
   * an error of the preparation occurs again in the verb itself, which reports it.
   */
  #comesFirst(verb: Verb, assignment: Assignment, isWanted: () => boolean): Promise<unknown> | undefined {
    const { sandboxId } = assignment
    const status = this.#host.get(sandboxId)?.status
    const isUp = status === 'started' || status === 'paused'
    if (verb === 'start' && isFork(assignment) && !isUp) return this.#copy(assignment, isWanted)
    const copies = this.#copies.get(sandboxId)
    const copied = copies && Promise.all(copies)
    if (verb !== 'archive' || !isUp) return copied
    return (copied ?? Promise.resolve()).then(() => this.#stop(assignment, isWanted))
  }

  /** Stops a sandbox that is to be archived, so that nothing in it runs while it waits for a lane. */
  async #stop(assignment: Assignment, isWanted: () => boolean): Promise<void> {
    const stop = async () => {
      if (isWanted()) await this.#host.stop(assignment)
    }
    await this.#stops.run(stop, { owner: assignment.organizationId }).catch(() => undefined)
  }

  /** Copies the parent's disk. Verbs that are assigned to the parent from now on run after the copy. */
  #copy(assignment: Assignment & { forkOf: string }, isWanted: () => boolean): Promise<void> {
    const { forkOf } = assignment
    const copy = async () => {
      if (isWanted()) await this.#host.copyParent(assignment)
    }
    const all = this.#copies.get(forkOf) ?? new Set()
    this.#copies.set(forkOf, all)
    const copying = this.#forks
      .run(copy, { owner: forkOf })
      .catch(() => undefined)
      .finally(() => {
        all.delete(copying)
        if (all.size === 0) this.#copies.delete(forkOf)
      })
    all.add(copying)
    return copying
  }
}
