// A fair queue. It limits how much work runs at the same time, in total and for each owner.
import type { Budget } from './budget.ts'

type Limits<Owner> = {
  /** Maximum number of pieces of work that run at the same time. Default: no limit. */
  atOnce?: number
  /** Maximum number of pieces of work of one owner that run at the same time. Default: no limit. */
  ofOne?: number
  /**
   * Limits how many pieces of work may wait. `full`: returns the error for a piece that may not wait. Default: no
   * limit.
   */
  waiting?: { places: Budget<Owner | undefined>; full: (owner: Owner | undefined) => Error }
  /**
   * Which waiting work runs next. `least served`: the oldest work of the owner with the fewest running pieces. Default: `oldest`.
   */
  pick?: 'oldest' | 'least served'
}

type Turn<Owner> = { owner?: Owner | undefined; signal?: AbortSignal | undefined }

type QueuedPiece = { place: number; begin: () => void }

export class FairQueue<Owner = string> {
  readonly #limits: Limits<Owner>
  /** How many pieces of work run now, for each owner. */
  readonly #running = new Map<Owner | undefined, number>()
  /** The work that waits, by owner, oldest first. */
  readonly #waiting = new Map<Owner | undefined, Set<QueuedPiece>>()
  #all = 0
  #lastPlace = 0

  constructor(limits: Limits<Owner>) {
    this.#limits = limits
  }

  has(owner: Owner): boolean {
    return this.#running.has(owner) || this.#waiting.has(owner)
  }

  /**
   * Runs `work` when the limits allow it. Work that has not begun when `signal` aborts is not run. Throws the error for a full
   * queue, or the reason of the signal.
   */
  async run<T>(work: () => Promise<T>, { owner, signal }: Turn<Owner> = {}): Promise<T> {
    const waiting = this.#enter(owner, signal)
    if (waiting) await waiting
    try {
      return await work()
    } finally {
      this.#end(owner)
    }
  }

  /**
   * Waits until work of this owner may run. The caller must dispose of the result exactly once, when the work is done. Throws the
   * error for a full queue, or the signal's reason.
   */
  async take(owner?: Owner, signal?: AbortSignal): Promise<Disposable> {
    await this.#enter(owner, signal)
    return { [Symbol.dispose]: () => this.#end(owner) }
  }

  /** Returns undefined if the work may run now. Otherwise queues it, and returns a promise that resolves when it may run. */
  #enter(owner: Owner | undefined, signal: AbortSignal | undefined): Promise<void> | undefined {
    signal?.throwIfAborted()
    const { waiting } = this.#limits
    if (this.#hasRoomFor(owner)) {
      this.#count(owner, 1)
      return undefined
    }
    if (waiting && !waiting.places.take(owner)) throw waiting.full(owner)
    return this.#wait(owner, signal).finally(() => waiting?.places.give(owner))
  }

  #wait(owner: Owner | undefined, signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = () => {
      this.#leave(owner, piece)
      reject(signal?.reason)
    }
    const begin = () => {
      signal?.removeEventListener('abort', leave)
      resolve()
    }
    const piece = { place: ++this.#lastPlace, begin }
    this.#waiting.set(owner, (this.#waiting.get(owner) ?? new Set()).add(piece))
    signal?.addEventListener('abort', leave, { once: true })
    return promise
  }

  #leave(owner: Owner | undefined, piece: QueuedPiece): void {
    const pieces = this.#waiting.get(owner)
    pieces?.delete(piece)
    if (pieces?.size === 0) this.#waiting.delete(owner)
  }

  /** Ends a piece of work. A waiting piece begins now, before a new caller can begin. */
  #end(owner: Owner | undefined): void {
    this.#count(owner, -1)
    let next: { owner: Owner | undefined; piece: QueuedPiece; rank: number } | undefined
    for (const [owner, [piece]] of this.#waiting) {
      if (piece === undefined || !this.#hasRoomFor(owner)) continue
      const rank = this.#limits.pick === 'least served' ? this.#runningOf(owner) : 0
      const isNext = next === undefined || rank < next.rank || (rank === next.rank && piece.place < next.piece.place)
      if (isNext) next = { owner, piece, rank }
    }
    if (next === undefined) return
    this.#leave(next.owner, next.piece)
    this.#count(next.owner, 1)
    next.piece.begin()
  }

  #runningOf(owner: Owner | undefined): number {
    return this.#running.get(owner) ?? 0
  }

  #hasRoomFor(owner: Owner | undefined): boolean {
    const { atOnce = Infinity, ofOne = Infinity } = this.#limits
    return this.#all < atOnce && this.#runningOf(owner) < ofOne
  }

  #count(owner: Owner | undefined, by: 1 | -1): void {
    const count = this.#runningOf(owner) + by
    this.#all += by
    if (count === 0) this.#running.delete(owner)
    else this.#running.set(owner, count)
  }
}
