// Makes the images of this runner what control says they should be, and tells what became of them.
//
// Level-triggered, as the keeper of sandboxes is. What failed is tried again when control asks for it anew over the link; in
// its list it only says so again. An image that something here needs is removed when nothing does any more.
import type { Logger } from '#src/kit/log.ts'
import { FairQueue } from '#src/kit/queue.ts'
import { ImageFailed } from '#src/runner/images/image-failed.ts'
import { reasonOf } from '#src/runner/machine/machine.ts'
import type { ImageAssignment, ImageReport, Progress } from '#src/wire/runner-link.ts'
import type { AllImages } from './all-images.ts'
import { BuildLog } from './build-log.ts'

export type ImageKeeperParts = {
  images: Pick<AllImages, 'find' | 'bring' | 'remove'>
  report: (report: ImageReport) => void
  onProgress: (image: string, progress: Progress) => void
  /** What was said while one was made; may be lost. */
  onText: (image: string, text: string) => void
  log: Logger
  now?: () => number
  lanes?: Partial<typeof standardLanes>
}

type Entry = {
  assignment: ImageAssignment
  settled?: ImageReport
  working?: AbortController
  saidAt: number
}

const standardLanes = {
  /** Brought or built at the same time; the others wait. */
  long: 3,
  /** Images that take long, at one time, of one organization. */
  longOfOne: 2,
  /** What takes a moment: disks that become images, removals, and saying of an image that it is here. */
  short: 4,
}

/** More often nobody looks. */
const progressEveryMs = 1000

export class ImageKeeper implements Disposable {
  readonly #parts: Required<Omit<ImageKeeperParts, 'lanes'>>
  readonly #short: FairQueue
  readonly #long: FairQueue
  readonly #entries = new Map<string, Entry>()
  #isClosed = false

  constructor({ lanes, ...parts }: ImageKeeperParts) {
    const { long, longOfOne, short } = { ...standardLanes, ...lanes }
    this.#parts = { now: Date.now, ...parts }
    this.#long = new FairQueue({ atOnce: long, ofOne: longOfOne })
    this.#short = new FairQueue({ atOnce: short })
  }

  /** Control says what one image should be. */
  take(assignment: ImageAssignment): void {
    const entry = this.#entryFor(assignment)
    if (entry.settled?.state === 'error') delete entry.settled
    this.#reconcile(entry)
  }

  /** The whole list. What it does not name is left as it is. */
  takeAll(listed: readonly ImageAssignment[]): void {
    for (const assignment of listed) {
      const entry = this.#entryFor(assignment)
      const isKnown = assignment.source === undefined && entry.settled?.state === 'present'
      if (!isKnown) this.#reconcile(entry)
    }
    const names = new Set(listed.map(({ image }) => image))
    for (const [image, { working }] of this.#entries) if (!working && !names.has(image)) this.#entries.delete(image)
  }

  #entryFor(assignment: ImageAssignment): Entry {
    const known = this.#entries.get(assignment.image)
    const isSaidWhole = known?.assignment.source !== undefined || assignment.source === undefined
    if (known?.assignment.target === assignment.target && isSaidWhole) return known
    known?.working?.abort()
    const entry: Entry = { assignment, saidAt: 0, ...(known?.working ? { working: known.working } : {}) }
    this.#entries.set(assignment.image, entry)
    return entry
  }

  #reconcile(entry: Entry) {
    if (this.#isClosed || entry.working) return
    if (entry.settled) {
      this.#parts.report(entry.settled)
      return
    }
    const working = new AbortController()
    entry.working = working
    const { signal } = working
    const owner = entry.assignment.organizationId
    this.#lanesFor(entry.assignment)
      .run(() => this.#perform(entry, signal), { owner, signal })
      .catch(() => undefined)
      .then((report) => this.#ended(entry, working, report))
  }

  #lanesFor({ image, target, source }: ImageAssignment): FairQueue {
    const isShort = target === 'absent' || source?.kind === 'sandbox' || this.#parts.images.find(image) !== undefined
    return isShort ? this.#short : this.#long
  }

  #ended(entry: Entry, working: AbortController, report: ImageReport | undefined) {
    // The entry may have been replaced by one with another target, which waits for this one to end.
    const latest = this.#entries.get(entry.assignment.image)
    if (latest?.working === working) delete latest.working
    delete entry.working
    if (latest !== entry) {
      if (latest) this.#reconcile(latest)
    } else if (report) {
      entry.settled = report
      if (!this.#isClosed) this.#parts.report(report)
    }
  }

  /** Undefined: not yet; the next list asks again. */
  async #perform({ assignment }: Entry, signal: AbortSignal): Promise<ImageReport | undefined> {
    const { image, target, source } = assignment
    const { images, log, onText } = this.#parts
    if (this.#isClosed) return undefined
    using said = new BuildLog((text) => onText(image, text))
    try {
      if (target === 'present') {
        const bringing = { signal, onProgress: this.#sayOf(image), onText: (text: string) => said.add(text) }
        const known = images.find(image) ?? (source && (await images.bring({ ...assignment, source }, bringing)))
        // Control thinks that it is here; told that it is not, it says what it is made of.
        return known === undefined ? { image, state: 'absent' } : { image, state: 'present', ...known }
      }
      return (await images.remove(image)) ? { image, state: 'absent' } : undefined
    } catch (error) {
      if (signal.aborted || this.#isClosed) return undefined
      const level = error instanceof ImageFailed ? 'info' : 'warn'
      log[level]({ err: error, image, target }, 'an image could not be made what it should be')
      if (target === 'present') said.add(`${reasonOf(error)}\n`)
      return target === 'present' ? { image, state: 'error', errorReason: reasonOf(error) } : undefined
    }
  }

  #sayOf(image: string) {
    return (progress: Progress) => {
      const entry = this.#entries.get(image)
      const now = this.#parts.now()
      if (this.#isClosed || !entry || now - entry.saidAt < progressEveryMs) return
      entry.saidAt = now
      this.#parts.onProgress(image, progress)
    }
  }

  [Symbol.dispose]() {
    this.#isClosed = true
    for (const { working } of this.#entries.values()) working?.abort()
  }
}
