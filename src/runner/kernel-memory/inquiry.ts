// Finds the sandbox that makes uncharged memory grow slowly, if sockets.ts and experiment.ts have not found the cause. An inquiry
// freezes sandboxes from time to time for a measurement (trial.ts). It ends when it finds a sandbox, when the growth stops, or when
// no sandbox is the cause.
import { findGrownSlabs, sumSlabs } from './slabs.ts'
import { Trial, type TrialParts } from './trial.ts'

export type InquiryParts = TrialParts & {
  slabs: () => ReadonlyMap<string, number>
  /** Returns the current time in milliseconds, from a clock that never goes back. */
  now: () => number
}

/** The inquiry ends if memory grows at less than this fraction of the speed at which it grew before the inquiry. */
const leastPart = 1 / 4
/**
 * Maximum number of measurements (`Trial.bout`) of one inquiry. With pauses of 30 seconds between them, these measurements take
 * more than an hour and a half.
 */
const mostBouts = 200

export type Finding = 'nothing yet' | 'over' | { grower: string }

export class Inquiry {
  readonly #parts: InquiryParts
  readonly #noticedBytesPerSecond: number
  readonly #begun: { at: number; whole: number; slabs: ReadonlyMap<string, number> }
  #measured: { trial: Trial; bytes: () => number; before: number } | undefined
  #bouts = 0

  /** `bytesPerSecond`: how fast memory was growing when the growth was noticed. */
  constructor(parts: InquiryParts, bytesPerSecond: number) {
    this.#parts = parts
    this.#noticedBytesPerSecond = bytesPerSecond
    this.#begun = { at: parts.now(), whole: parts.uncharged(), slabs: parts.slabs() }
  }

  /**
   * Makes the next measurement, if memory still grows. The caller must wait before each call, so that there is growth to measure.
   */
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

  /**
   * Starts a trial. If kernel caches have grown, it measures only these caches: their growth can be measured more exactly than that
   * of all memory.
   */
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
