// Detects that control no longer accepts this runner's key. A single 401 may come from a control that is being replaced, or from
// another server at control's address.

/** The key counts as refused if control has answered only with 401 for this many milliseconds. */
export const refusedAfterMs = 60_000

export class KeyRefusal {
  readonly #onChange: (isRefused: boolean) => void
  readonly #now: () => number
  /** Time at which the current series of 401 answers began. Undefined if the last request had another result. */
  #since: number | undefined
  #isRefused = false

  constructor(onChange: (isRefused: boolean) => void, now: () => number = () => performance.now()) {
    this.#onChange = onChange
    this.#now = now
  }

  /** Must be called with the status of each answer from control, or with undefined if control could not be reached. */
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
