// Brings the images of this runner to the state that control wants, and reports the result.
//
// Each assignment describes the wanted state, so missed or repeated messages do no harm. After a failure, an assignment of one
// image starts a new attempt (`take`). A list of all assignments starts no attempt: the keeper only reports the failure again
// (`takeAll`). If control wants an image removed, the keeper waits until nothing uses the image.
import type { Logger } from '#src/kit/log.ts'
import { FairQueue } from '#src/kit/queue.ts'
import { ImageFailed } from '#src/runner/images/image-failed.ts'
import { reasonOf } from '#src/runner/machine/machine.ts'
import type { ImageAssignment, ImageReport, Progress } from '#src/wire/runner-link.ts'
import type { AllImages } from './all-images.ts'
import { BuildLog } from './build-log.ts'

export type ImageKeeperParts = {
  images: Pick<AllImages, 'find' | 'bring' | 'remove' | 'hasBaseOf' | 'store' | 'removeStored'>
  report: (report: ImageReport) => void
  onProgress: (image: string, progress: Progress) => void
  /** Sends a piece of the log of an image's build to control. Best effort: a piece may be lost. */
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
  /** Maximum number of images that are fetched or built at the same time. More images than that are queued. */
  long: 3,
  /** Maximum number of images that are fetched or built at the same time for one organization. */
  longOfOne: 2,
  /** Maximum number of quick tasks at a time: snapshots, removals, and reports about images that are present. */
  short: 4,
  /** Maximum number of images that are put into the object store at the same time. */
  storing: 1,
}

/** Milliseconds between two attempts to put an image into the object store. */
const storeAgainMs = 60_000

const progressEveryMs = 1000

const withoutLogins = ({ logins: _logins, ...assignment }: ImageAssignment): ImageAssignment => assignment

export class ImageKeeper implements Disposable {
  readonly #parts: Required<Omit<ImageKeeperParts, 'lanes'>>
  readonly #short: FairQueue
  readonly #long: FairQueue
  readonly #storing: FairQueue
  readonly #stores = new Map<string, { aborter: AbortController; done: Promise<void> }>()
  readonly #storedAt = new Map<string, number>()
  readonly #entries = new Map<string, Entry>()
  #isClosed = false

  constructor({ lanes, ...parts }: ImageKeeperParts) {
    const { long, longOfOne, short, storing } = { ...standardLanes, ...lanes }
    this.#parts = { now: Date.now, ...parts }
    this.#long = new FairQueue({ atOnce: long, ofOne: longOfOne })
    this.#short = new FairQueue({ atOnce: short })
    this.#storing = new FairQueue({ atOnce: storing })
  }

  /** Carries out control's assignment of one image. */
  take(assignment: ImageAssignment): void {
    const entry = this.#entryFor(assignment)
    if (entry.settled?.state === 'error') delete entry.settled
    this.#reconcile(entry)
    this.#store(assignment)
  }

  /** Carries out all assignments of control's list. Images on this runner that are not in the list stay. */
  takeAll(listed: readonly ImageAssignment[]): void {
    for (const assignment of listed) {
      const entry = this.#entryFor(assignment)
      const isKnown = assignment.source === undefined && entry.settled?.state === 'present'
      if (!isKnown) this.#reconcile(entry)
      this.#store(assignment)
    }
    const names = new Set(listed.map(({ image }) => image))
    for (const [image, { working }] of this.#entries) if (!working && !names.has(image)) this.#entries.delete(image)
  }

  /** Puts an image into the object store, if control asks for it. Control asks again until it gets the report. */
  #store({ image, target, toStore, organizationId: owner }: ImageAssignment) {
    const { images, report, log, now } = this.#parts
    if (target === 'absent') this.#stores.get(image)?.aborter.abort()
    const isSoon = now() - (this.#storedAt.get(image) ?? -storeAgainMs) < storeAgainMs
    if (!toStore || target === 'absent' || this.#isClosed || isSoon || this.#stores.has(image)) return
    const known = images.find(image)
    if (known === undefined) return
    const aborter = new AbortController()
    const { signal } = aborter
    const done = this.#storing
      .run(async () => report({ image, state: 'present', ...known, stored: await images.store(image, signal) }), {
        owner,
        signal,
      })
      .catch((error: unknown) => {
        if (!signal.aborted) log.warn({ err: error, image }, 'an image could not be put into the store')
      })
      .finally(() => {
        this.#stores.delete(image)
        if (!signal.aborted) this.#storedAt.set(image, now())
      })
    this.#stores.set(image, { aborter, done })
  }

  #entryFor(assignment: ImageAssignment): Entry {
    const known = this.#entries.get(assignment.image)
    const isSaidWhole = known?.assignment.source !== undefined || assignment.source === undefined
    if (known?.assignment.target === assignment.target && isSaidWhole) {
      // The newer assignment replaces the earlier one, because the newer one may have other credentials for registries.
      if (assignment.source !== undefined && known.settled?.state !== 'present') known.assignment = assignment
      return known
    }
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
    // While the work ran, a newer assignment may have replaced `entry`. Begin the work for the newer one now.
    const latest = this.#entries.get(entry.assignment.image)
    if (latest?.working === working) delete latest.working
    delete entry.working
    if (latest !== entry) {
      if (latest) this.#reconcile(latest)
    } else if (report) {
      entry.settled = report
      // Removes the passwords for registries from memory. Control sends them again with the next assignment of this image.
      entry.assignment = withoutLogins(entry.assignment)
      if (!this.#isClosed) this.#parts.report(report)
    }
  }

  /** Brings an image to its assigned state, and returns the report for control. Undefined if the runner must try again later. */
  async #perform({ assignment }: Entry, signal: AbortSignal): Promise<ImageReport | undefined> {
    const { image, target, source } = assignment
    const { images, log, onText } = this.#parts
    if (this.#isClosed) return undefined
    using said = new BuildLog((text) => onText(image, text))
    try {
      if (target === 'present') {
        const bringing = { signal, onProgress: this.#sayOf(image), onText: (text: string) => said.add(text) }
        // The base image must be on this runner first. Control assigns the base image separately.
        if (images.find(image) === undefined && source && !images.hasBaseOf(source)) return undefined
        const known = images.find(image) ?? (source && (await images.bring({ ...assignment, source }, bringing)))
        // An assignment without a source is for an image that control believes to be on this runner. After the report `absent`,
        // control sends the source.
        return known === undefined ? { image, state: 'absent' } : { image, state: 'present', ...known }
      }
      await this.#stores.get(image)?.done
      this.#storedAt.delete(image)
      if (assignment.isStored) await images.removeStored(image)
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
    for (const { aborter } of this.#stores.values()) aborter.abort()
  }
}
