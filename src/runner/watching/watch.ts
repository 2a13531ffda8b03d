// Notices when PID 1 of a sandbox has ended by itself, by reading a small file once a second. The runner is not the parent of PID
// 1, and Node has no pidfd.
import { isAlive } from '#src/kit/process-identity.ts'
import type { Init } from '#src/runner/machine/processes.ts'

const intervalMs = 1_000
/** Number of sandboxes checked in one turn of the event loop. A check takes some microseconds, so requests hardly wait. */
const atOnce = 200

export class Watch {
  readonly #watched = new Map<string, Init>()
  readonly #onEnd: (sandboxId: string) => void
  readonly #timer: NodeJS.Timeout
  #isLooking = false

  /** `onEnd` is called once for each sandbox that has ended. */
  constructor(onEnd: (sandboxId: string) => void) {
    this.#onEnd = onEnd
    this.#timer = setInterval(() => void this.#look(), intervalMs).unref()
  }

  add(sandboxId: string, init: Init) {
    this.#watched.set(sandboxId, init)
  }

  remove(sandboxId: string) {
    this.#watched.delete(sandboxId)
  }

  close() {
    clearInterval(this.#timer)
    this.#watched.clear()
  }

  async #look() {
    if (this.#isLooking) return
    this.#isLooking = true
    let looked = 0
    for (const [sandboxId, init] of [...this.#watched]) {
      if (++looked % atOnce === 0) await new Promise(setImmediate)
      if (this.#watched.get(sandboxId) !== init || isAlive(init)) continue
      this.#watched.delete(sandboxId)
      this.#onEnd(sandboxId)
    }
    this.#isLooking = false
  }
}
