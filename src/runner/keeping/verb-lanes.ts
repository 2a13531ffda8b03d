// Whose turn it is: how many verbs are under way at one time, what each waits for first, and what is left to others meanwhile.
// A verb that waits for another sandbox holds no lane.
import { Lanes } from '#src/kit/lanes.ts'
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
 * Starts, and destroys, under way at one time; stops mostly wait, so there may be more of them; what moves whole disks to
 * archives, and from them, must not keep the rest waiting, nor one the other.
 */
export type AtOnce = { work: number; stops: number; transfers: number }

/** It has its parent's disk yet to come. */
export const isFork = (assignment: Assignment): assignment is Assignment & { forkOf: string } =>
  assignment.target === 'started' && assignment.isNew === true && assignment.forkOf !== undefined

/** A lane of which one organization takes at most a share, so that others need not wait for its long work. */
const shared = (atOnce: number, share: number) => new Lanes(atOnce, Math.ceil(atOnce * share))

type TurnsHost = Pick<Host, 'get' | 'copyParent' | 'stop' | 'cutShort'>

export class VerbLanes {
  readonly #host: TurnsHost
  readonly #work: Lanes
  readonly #destroys: Lanes
  readonly #stops: Lanes
  readonly #archives: Lanes
  readonly #restores: Lanes
  /** For copies of disks for forks. A parent is copied for one fork at a time: each copy waits for what is being done to the parent. */
  readonly #forks: Lanes
  /** The copies under way or in line, by the parent's id. */
  readonly #copies = new Map<string, Set<Promise<void>>>()

  constructor(host: TurnsHost, { work, stops, transfers }: AtOnce = { work: 8, stops: 64, transfers: 4 }) {
    this.#host = host
    this.#work = shared(work, 0.75)
    this.#destroys = shared(work, 0.75)
    this.#stops = shared(stops, 0.75)
    this.#archives = shared(transfers, 0.5)
    this.#restores = shared(transfers, 0.5)
    this.#forks = new Lanes(work, 1)
  }

  /**
   * Does `work`, which must not reject, when it is its turn: first, without a lane for it, what must come before, as long as
   * `isWanted`; then it waits for a lane. `work` itself finds out whether it is wanted still.
   */
  take(verb: Verb, assignment: Assignment, isWanted: () => boolean, work: () => Promise<void>): void {
    // What is under way need not be waited for, and may hold the very lanes that this waits for.
    if (verb === 'destroy') this.#host.cutShort(assignment.sandboxId)
    const begin = () => this.#lanesOf(verb, assignment).run(work, { key: assignment.organizationId })
    const first = this.#comesFirst(verb, assignment, isWanted)
    void (first === undefined ? begin() : first.then(begin))
  }

  /** Removes a sandbox that control does not know. */
  async remove(work: () => Promise<void>): Promise<void> {
    await this.#work.run(work)
  }

  #lanesOf(verb: Verb, { sandboxId, archive }: Assignment): Lanes {
    if (verb === 'stop') return this.#stops
    if (verb === 'destroy') return this.#destroys
    if (verb === 'archive') return this.#archives
    const status = this.#host.get(sandboxId)?.status ?? 'archived'
    const isRestore = verb === 'start' && status === 'archived' && archive?.sha256 !== undefined
    return isRestore ? this.#restores : this.#work
  }

  /** Never rejects: whatever fails there fails once more in the verb itself, which says so. */
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
    await this.#stops.run(stop, { key: assignment.organizationId }).catch(() => undefined)
  }

  /** Copies the parent's disk. Whatever is asked of the parent from now on is done after the copy. */
  #copy(assignment: Assignment & { forkOf: string }, isWanted: () => boolean): Promise<void> {
    const { forkOf } = assignment
    const copy = async () => {
      if (isWanted()) await this.#host.copyParent(assignment)
    }
    const all = this.#copies.get(forkOf) ?? new Set()
    this.#copies.set(forkOf, all)
    const copying = this.#forks
      .run(copy, { key: forkOf })
      .catch(() => undefined)
      .finally(() => {
        all.delete(copying)
        if (all.size === 0) this.#copies.delete(forkOf)
      })
    all.add(copying)
    return copying
  }
}
