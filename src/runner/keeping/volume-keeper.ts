// Removes the volumes that control no longer wants, and reports that they are gone. Control repeats what is not reported.
import { inParallel } from '#src/kit/in-parallel.ts'
import type { Logger } from '#src/kit/log.ts'
import type { Host } from '#src/runner/host.ts'
import type { VolumeAssignment, VolumeReport } from '#src/wire/runner-link.ts'

type VolumeKeeperParts = {
  host: Pick<Host, 'removeVolume'>
  report: (report: VolumeReport) => void
  log: Logger
}

/** A volume can have many files, and sandboxes use the same disk. */
const atOnce = 2

export class VolumeKeeper implements Disposable {
  readonly #parts: VolumeKeeperParts
  readonly #underWay = new Set<string>()
  #last: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(parts: VolumeKeeperParts) {
    this.#parts = parts
  }

  takeAll(assignments: readonly VolumeAssignment[]): void {
    const fresh = assignments.filter(({ volumeId }) => !this.#underWay.has(volumeId))
    if (fresh.length === 0) return
    for (const { volumeId } of fresh) this.#underWay.add(volumeId)
    this.#last = this.#last.then(() => inParallel(atOnce, fresh, (assignment) => this.#remove(assignment)))
  }

  async #remove(assignment: VolumeAssignment): Promise<void> {
    const { host, report, log } = this.#parts
    const { volumeId } = assignment
    if (this.#isClosed) return
    try {
      await host.removeVolume(assignment)
      report({ volumeId, state: 'absent' })
    } catch (error) {
      log.warn({ err: error, volumeId }, 'a volume could not be removed; it is tried again')
    } finally {
      this.#underWay.delete(volumeId)
    }
  }

  /** A removal under way goes on, or the next runner repeats it. */
  [Symbol.dispose]() {
    this.#isClosed = true
  }
}
