// Notices when the first process of a sandbox has ended by itself. The runner is not the parent of these processes, and Node
// does not support pidfd. Therefore each process is checked once a second, by reading one small file.
import { isAlive } from '#src/kit/process-identity.ts'
import type { Init } from '#src/runner/machine/processes.ts'

const intervalMs = 1_000
/**
 * Number of sandboxes for which one turn of the event loop checks that their first process still runs. A check takes some
 * microseconds, so requests are hardly delayed.
 */
const atOnce = 200

export class Watch {
  readonly #watched = new Map<string, Init>()
  readonly #onEnd: (sandboxId: string) => void
  readonly #timer: NodeJS.Timeout
  #isLooking = false

  /** `onEnd` is called once for each sandbox that has ended. The sandbox is not checked any more after that. */
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
