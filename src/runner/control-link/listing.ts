// Fetches a list from control at intervals and shortly after `readSoon`, but never twice at the same time.
import type { Logger } from '#src/kit/log.ts'

type ListingParts<Item> = {
  list: () => Promise<Item[]>
  /** Called with each list. `askedAt`: time at which the list was requested. The list may lack any change after that time. */
  take: (listed: Item[], askedAt: number) => void
  log: Logger
  now?: () => number
  everyMs?: number
  /** Pause after a failure, in milliseconds. It doubles after each further failure, up to a few seconds. */
  retryMs?: number
}

const longestRetryMs = 5_000

export class Listing<Item> implements Disposable {
  readonly #parts: Required<ListingParts<Item>>
  #timer: NodeJS.Timeout | undefined
  #isReading = false
  #isWanted = false
  #failures = 0
  #isClosed = false

  constructor(parts: ListingParts<Item>) {
    this.#parts = { now: Date.now, everyMs: 30_000, retryMs: 1000, ...parts }
  }

  readSoon(): void {
    this.#isWanted = true
    void this.#read()
  }

  async #read() {
    if (this.#isReading || this.#isClosed) return
    this.#isReading = true
    this.#isWanted = false
    clearTimeout(this.#timer)
    const { list, take, log, now, everyMs, retryMs } = this.#parts
    const askedAt = now()
    const listed = await list().catch((error: unknown) => {
      if (!this.#isClosed) log.warn({ err: error }, 'a list could not be read from control')
    })
    this.#isReading = false
    if (this.#isClosed) return
    if (listed) take(listed, askedAt)
    const waitMs = listed ? everyMs : Math.min(longestRetryMs, retryMs * 2 ** this.#failures)
    this.#failures = listed ? 0 : this.#failures + 1
    if (this.#isWanted && listed) void this.#read()
    else this.#timer = setTimeout(() => this.readSoon(), waitMs)
  }

  [Symbol.dispose]() {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }
}
