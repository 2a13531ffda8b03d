// Whether control has stopped taking the runner's key. One 401 says little: it may come from a control that is just being
// replaced, or from something else at its address.

/** Nothing but 401 for so long is no mishap: the runner was taken out of service, or control is another one. */
export const refusedAfterMs = 60_000

export class KeyRefusal {
  readonly #onChange: (isRefused: boolean) => void
  readonly #now: () => number
  /** Time of the first 401 since anything else was heard. */
  #since: number | undefined
  #isRefused = false

  constructor(onChange: (isRefused: boolean) => void, now: () => number = () => performance.now()) {
    this.#onChange = onChange
    this.#now = now
  }

  /** The status of each answer of control; undefined: it could not be asked. */
  heard(status: number | undefined): void {
    if (status === 401) {
      this.#since ??= this.#now()
      if (this.#now() - this.#since >= refusedAfterMs) this.#become(true)
      return
    }
    this.#since = undefined
    if (status !== undefined && status < 300) this.#become(false)
  }

  #become(isRefused: boolean) {
    if (this.#isRefused === isRefused) return
    this.#isRefused = isRefused
    this.#onChange(isRefused)
  }
}
