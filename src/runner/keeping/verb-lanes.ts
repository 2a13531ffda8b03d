// Decides how many verbs run at once, and what must be done before a verb, such as copying a parent's disk for a fork. During such
// a preparation, the verb takes no place in its lane.
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
 * Maximum numbers of verbs that run at once. `work` limits three groups separately: starts and pauses, destroys, and copies of
 * disks for forks. `stops` is high because a stop mostly waits. `transfers` limits archives and restores separately. Archives and
 * restores move whole disks, and must not delay other verbs.
 */
export type AtOnce = { work: number; stops: number; transfers: number }

/** Returns whether this is a fork whose disk has to be copied from its parent's disk first. */
export const isFork = (assignment: Assignment): assignment is Assignment & { forkOf: string } =>
  assignment.target === 'started' && assignment.isNew === true && assignment.forkOf !== undefined

/**
 * Makes a lane for `atOnce` verbs. One organization gets at most the part `share` of the lane, so that its slow verbs do not delay
 * other organizations.
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
   * The lane for copies of parents' disks, before forks start. A copy in the lane may wait for a verb of its parent. Each parent
   * has at most one place in the lane, so that copies of one parent's disk do not fill the lane.
   */
  readonly #forks: FairQueue
  /** For each parent of forks: the running and queued operations that copy the parent's disk. */
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
   * Prepares the verb (`#comesFirst`), then queues the function `work` in the verb's lane. If `isWanted` returns false, the
   * preparation copies no disk and stops no sandbox. But `work` runs in any case, so `work` must check whether the verb is wanted.
   * `work` must not reject.
   */
  take(verb: Verb, assignment: Assignment, isWanted: () => boolean, work: () => Promise<void>): void {
    // A destroy interrupts the running verb, which may fill the lane that the destroy needs.
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
   * Starts what must be done before the verb takes a place in its lane. Returns a promise for the end of this work:
   * - for the start of a fork: the copy of the parent's disk
   * - for any other verb: all copies of this sandbox's disk that forks need
   * - for the archive of a running sandbox: these copies, and then a stop of the sandbox
   *
   * Undefined if nothing must be done. Never rejects, because the start of a fork repeats a failed copy and reports the error.
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

  /** Stops a sandbox that has to be archived, so that none of its processes runs while the archive waits for a lane. */
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
