// Stores the progress of the first build of the default image. The terminal of `up` and `alcove status` show this progress.
import type { Progress } from '#src/wire/runner-link.ts'

export class MakingImage {
  readonly #show: (progress: Progress) => void
  readonly #onChange: () => void
  #progress: Progress | undefined

  constructor(show: (progress: Progress) => void, onChange: () => void) {
    this.#show = show
    this.#onChange = onChange
  }

  readonly take = (progress: Progress): void => {
    this.#show(progress)
    const before = this.#progress
    this.#progress = progress.percent === 100 ? undefined : progress
    if (before?.step !== this.#progress?.step || before?.percent !== this.#progress?.percent) this.#onChange()
  }

  /** The fields of the state file that describe the progress. Empty if the image is not being made. */
  get state(): { makingImage?: Progress } {
    return this.#progress === undefined ? {} : { makingImage: this.#progress }
  }
}
