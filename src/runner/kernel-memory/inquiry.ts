// What follows growth of uncharged memory that no table and no experiment could explain: as long as it goes on, a bout (trial.ts)
// from time to time. It is over when somebody was found, when memory does not grow any more, or when it is nobody's doing.
import { findGrownSlabs, sumSlabs } from './slabs.ts'
import { Trial, type TrialParts } from './trial.ts'

export type InquiryParts = TrialParts & {
  slabs: () => ReadonlyMap<string, number>
  /** Milliseconds, of a clock that only goes on. */
  now: () => number
}

/** Less than this part of the growth that was noticed is the end of it. */
const leastPart = 1 / 4
/** At the usual pace these take an hour and a half. */
const mostBouts = 200

export type Finding = 'nothing yet' | 'over' | { grower: string }

export class Inquiry {
  readonly #parts: InquiryParts
  readonly #noticedBytesPerSecond: number
  readonly #begun: { at: number; whole: number; slabs: ReadonlyMap<string, number> }
  #measured: { trial: Trial; bytes: () => number; before: number } | undefined
  #bouts = 0

  /** `bytesPerSecond`: how fast memory grew when that was noticed. */
  constructor(parts: InquiryParts, bytesPerSecond: number) {
    this.#parts = parts
    this.#noticedBytesPerSecond = bytesPerSecond
    this.#begun = { at: parts.now(), whole: parts.uncharged(), slabs: parts.slabs() }
  }

  /** Some time after it began, or after the last step. */
  async step(suspects: readonly string[]): Promise<Finding> {
    const seconds = (this.#parts.now() - this.#begun.at) / 1000
    this.#measured ??= this.#measure(seconds)
    const { trial, bytes, before } = this.#measured
    const bytesPerSecond = (bytes() - before) / seconds
    if (bytesPerSecond < this.#noticedBytesPerSecond * leastPart || ++this.#bouts > mostBouts) return 'over'
    await trial.bout(suspects, bytesPerSecond)
    if (trial.isNobodys) return 'over'
    return trial.grower === undefined ? 'nothing yet' : { grower: trial.grower }
  }

  remove(sandboxId: string) {
    this.#measured?.trial.remove(sandboxId)
  }

  /** The caches that grow tell more exactly than the whole does. */
  #measure(seconds: number) {
    const { uncharged, slabs } = this.#parts
    const names = findGrownSlabs(this.#begun.slabs, slabs(), this.#noticedBytesPerSecond * seconds)
    const [bytes, before] =
      names.length === 0
        ? [uncharged, this.#begun.whole]
        : [() => sumSlabs(slabs(), names), sumSlabs(this.#begun.slabs, names)]
    return { trial: new Trial({ ...this.#parts, uncharged: bytes }), bytes, before }
  }
}
