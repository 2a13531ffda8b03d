// Renews the default image every 30 days, when its recipe has changed, and on request. The old image stays in use until the new
// image is complete.
import { type FSWatcher, watch } from 'node:fs'
import type { Logger } from '#src/kit/log.ts'
import { repeat } from '#src/kit/repeat.ts'
import type { Progress } from '#src/wire/runner-link.ts'
import { RenewalFiles, type RenewalState } from './renewal-files.ts'
import type { ImageStore } from './store.ts'

const dayMs = 86_400_000
const renewAfterMs = 30 * dayMs
/** Time from a failed renewal of the default image to the next attempt. */
const tryAgainMs = dayMs
/** A renewal that nobody requested uses the cached image, if another runner of this host built it within this time. */
const sharedForMs = 7 * dayMs
const lookEverySeconds = 3600

type RenewalParts = {
  images: Pick<ImageStore, 'renewDefault' | 'defaultAge' | 'removeReplaced'>
  /** Returns the base images of all disks of sandboxes and snapshots. */
  basesInUse: () => Promise<ReadonlySet<string>>
  runnerDirectory: string
  log: Logger
  now?: () => number
}

export class Renewal {
  readonly #parts: RenewalParts
  readonly #files: RenewalFiles
  readonly #now: () => number
  #watcher: FSWatcher | undefined
  #stop = () => {}
  #looking: Promise<void> | undefined
  #mustLook = false

  constructor(parts: RenewalParts) {
    this.#parts = parts
    this.#files = new RenewalFiles(parts.runnerDirectory)
    this.#now = parts.now ?? Date.now
  }

  /** Starts to look for due renewals. Must be called after the default image is on this host. */
  start(): void {
    this.#files.open()
    const { renewal } = this.#files.read()
    if (renewal?.state === 'running')
      this.#say({ ...renewal, state: 'failed', reason: 'The runner ended before the renewal was finished.' })
    else this.#say(renewal)
    this.#watcher = watch(this.#files.directory, (_event, name) => {
      if (name === 'request.json') void this.look()
    })
    this.#stop = repeat(
      lookEverySeconds,
      () => this.look(),
      () => {},
    )
    void this.look()
  }

  /**
   * Renews the default image if a renewal is requested or due. Then removes older versions of the image that nothing uses any more.
   */
  look(): Promise<void> {
    this.#mustLook = true
    this.#looking ??= this.#lookWhileAsked().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #lookWhileAsked() {
    while (this.#mustLook) {
      this.#mustLook = false
      try {
        const request = this.#files.takeRequest()
        if (request !== undefined) await this.#renew(new Date(this.#now()), request)
        else if (this.#isDue()) await this.#renew(new Date(this.#now() - sharedForMs))
        const removed = await this.#parts.images.removeReplaced(await this.#parts.basesInUse())
        if (removed.length > 0) this.#parts.log.info({ removed }, 'default images that nothing needs were removed')
      } catch (err) {
        this.#parts.log.warn({ err }, 'default images could not be looked after')
      }
    }
  }

  #isDue(): boolean {
    const age = this.#parts.images.defaultAge()
    if (age === undefined) return false
    const { renewal } = this.#files.read()
    if (renewal?.state === 'failed' && this.#now() - Date.parse(renewal.since) < tryAgainMs) return false
    return !age.isOfThisRecipe || this.#now() - age.madeAt.getTime() >= renewAfterMs
  }

  async #renew(notBefore: Date, request?: string) {
    const of = request === undefined ? {} : { request }
    const since = () => new Date(this.#now()).toISOString()
    const began = since()
    const tell = (progress?: Progress) => this.#say({ ...of, state: 'running', since: began, ...progress })
    tell()
    try {
      await this.#parts.images.renewDefault(notBefore, tell)
      this.#say({ ...of, state: 'done', since: since() })
    } catch (err) {
      this.#parts.log.error({ err }, 'the default image could not be renewed; the old one stays in use')
      this.#say({ ...of, state: 'failed', since: since(), reason: (err as Error).message })
    }
  }

  #say(renewal: RenewalState['renewal']) {
    const madeAt = this.#parts.images.defaultAge()?.madeAt.toISOString()
    this.#files.write({ ...(madeAt === undefined ? {} : { madeAt }), ...(renewal === undefined ? {} : { renewal }) })
  }

  [Symbol.dispose](): void {
    this.#watcher?.close()
    this.#stop()
  }
}
