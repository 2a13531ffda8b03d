// Counters that all control processes share. Each process counts in memory, and tells the other processes four times a second.
// So the calls of a quarter of a second may exceed a limit. A lost message is not repeated.
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import type { Parts } from '../parts.ts'
import { Peers } from '../storage/peers.ts'

const tellEveryMs = 250
/** Maximum number of counts that wait to be sent to other processes. Further counts are never sent. */
const mostUntold = 10_000

type News = { counter: string; key: string; points: number; seconds: number }

export type Counted = Pick<RateLimiterRes, 'consumedPoints' | 'msBeforeNext'>

/** Counts calls or wrong credentials for each key. A count begins with the first call, and is deleted some seconds later. */
export type SharedCounter = {
  get: (key: string) => Promise<Counted | null>
  /** Adds 1 to the count of a key. A new count is deleted after `seconds`. Default: `usualSeconds` of the counter. */
  add: (key: string, seconds?: number) => Promise<Counted>
  /** Subtracts 1 from the count of a key, for example because a password turned out to be right. */
  giveBack: (key: string) => Promise<void>
}

const known = new WeakMap<Parts['database'], SharedCounters>()

export class SharedCounters {
  /**
   * The secret for `createAddressKeys`, which maps IP addresses to counters. All control processes have the same
   * secret.
   */
  readonly secret: Buffer
  readonly #parts: Pick<Parts, 'database' | 'log'>
  readonly #limiters = new Map<string, RateLimiterMemory>()
  readonly #untold = new Map<string, News>()
  #timer: NodeJS.Timeout | undefined
  #peers: Peers<News> | undefined

  private constructor({ database, log, encryption }: Pick<Parts, 'database' | 'log' | 'encryption'>) {
    this.#parts = { database, log }
    this.secret = encryption.derive('rate limits')
  }

  /** Returns this process's only instance for a database, so that all modules of the process use the same counters. */
  static of(parts: Pick<Parts, 'database' | 'log' | 'encryption'>): SharedCounters {
    const found = known.get(parts.database) ?? new SharedCounters(parts)
    known.set(parts.database, found)
    return found
  }

  /** Connects to the other control processes. Before this call, the process counts only its own calls. */
  async join(): Promise<void> {
    const onNews = (news: News) => void this.#count(news)
    this.#peers ??= await Peers.open({ ...this.#parts, channel: 'rate_counts', onNews })
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#peers?.close()
    this.#peers = undefined
  }

  /**
   * Returns a counter. All processes share counters with the same `name`. `usualSeconds`: seconds after which a count
   * is deleted, unless the call of `add` names another number.
   */
  counter(name: string, usualSeconds: number): SharedCounter {
    const limiter = this.#limiterOf(name)
    return {
      get: (key) => limiter.get(key),
      add: async (key, seconds = usualSeconds) => {
        this.#note({ counter: name, key, points: 1, seconds })
        return await limiter.penalty(key, 1, { customDuration: seconds })
      },
      giveBack: async (key) => {
        this.#note({ counter: name, key, points: -1, seconds: usualSeconds })
        await limiter.reward(key)
      },
    }
  }

  #limiterOf(name: string): RateLimiterMemory {
    const limiter = this.#limiters.get(name) ?? new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: 60 })
    this.#limiters.set(name, limiter)
    return limiter
  }

  #note(news: News): void {
    if (this.#peers === undefined) return
    const place = `${news.counter} ${news.key}`
    const before = this.#untold.get(place)
    if (before === undefined && this.#untold.size >= mostUntold) return
    this.#untold.set(place, { ...news, points: news.points + (before?.points ?? 0) })
    this.#timer ??= setTimeout(() => this.#tell(), tellEveryMs).unref()
  }

  #tell(): void {
    this.#timer = undefined
    for (const news of this.#untold.values()) if (news.points !== 0) this.#peers?.tell(news)
    this.#untold.clear()
  }

  async #count({ counter, key, points, seconds }: News): Promise<void> {
    const limiter = this.#limiterOf(counter)
    if (points > 0) await limiter.penalty(key, points, { customDuration: seconds })
    else await limiter.reward(key, -points)
  }
}
