// Decides when verbs run: how many run at the same time, and what must be done before a verb, such as the copy of a parent's disk
// for a fork. A verb does not take a place in its lane until that is done.
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
 * Maximum numbers of verbs that run at the same time. `work` is the limit for starts and pauses and, separately, for destroys and
 * for the copies of disks for forks. `stops` is high because a stop mostly waits. `transfers` is the limit for archives and,
 * separately, for restores. Both move whole disks, so they must not delay other verbs, and archives must not delay restores.
 */
export type AtOnce = { work: number; stops: number; transfers: number }

/** Returns whether this is a fork whose disk has to be copied from its parent's disk first. */
export const isFork = (assignment: Assignment): assignment is Assignment & { forkOf: string } =>
  assignment.target === 'started' && assignment.isNew === true && assignment.forkOf !== undefined

/**
 * Makes a lane that runs at most `atOnce` verbs. At most the part `share` of them may be of one organization, so that its slow
 * verbs do not delay verbs of other organizations.
 */
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
   * The lane for copies of parents' disks, which are made before forks start. A copy that has a place in the lane may still wait
   * until no verb of its parent runs. So that waiting copies of one parent cannot take all places, each parent has at most one.
   */
  readonly #forks: FairQueue
  /** Running and queued copies of parents' disks, by the id of the parent. */
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
   * Queues `work`, which performs a verb and must not reject, in the lane of the verb. Before that, copies the parent's disk for a
   * fork. For all other verbs, waits until this sandbox's disk was copied for the forks that were assigned earlier, and stops a
   * sandbox that has to be archived. Neither copies nor stops if `isWanted` returns false by then. `work` runs in any case, so it
   * must check by itself whether the verb is still wanted.
   */
  take(verb: Verb, assignment: Assignment, isWanted: () => boolean, work: () => Promise<void>): void {
    // A destroy interrupts the running verb of its sandbox instead of waiting for it, because that verb may fill the lane that
    // the destroy needs.
    if (verb === 'destroy') this.#host.cutShort(assignment.sandboxId)
    const begin = () => this.#lanesOf(verb, assignment).run(work, { owner: assignment.organizationId })
    const first = this.#comesFirst(verb, assignment, isWanted)
    void (first === undefined ? begin() : first.then(begin))
  }

  /** Runs `work`, which removes a sandbox that control's lists do not contain. */
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
   * Starts what must be done before a verb, such as the copy of the parent's disk before a fork. Undefined if there is nothing to
   * do. Never rejects: if a copy fails, the start of the fork tries to copy again, and reports the error if that fails, too.
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

  /** Stops a sandbox that has to be archived, so that nothing in it runs while its archive waits for a lane. */
  async #stop(assignment: Assignment, isWanted: () => boolean): Promise<void> {
    const stop = async () => {
      if (isWanted()) await this.#host.stop(assignment)
    }
    await this.#stops.run(stop, { owner: assignment.organizationId }).catch(() => undefined)
  }

  /** Copies the parent's disk for a fork. Verbs that are assigned to the parent from now on run after the copy. */
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
