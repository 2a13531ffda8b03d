// Removes the volumes that control asks to remove, and reports each removal. Control repeats its request until the report has
// arrived.
import type { Logger } from '#src/kit/log.ts'
import type { Host } from '#src/runner/host.ts'
import type { VolumeAssignment, VolumeDriver, VolumeReport } from '#src/wire/runner-link.ts'

type VolumeKeeperParts = {
  host: Pick<Host, 'removeVolume'>
  report: (report: VolumeReport) => void
  log: Logger
}

/**
 * Maximum number of removals at once, for each driver. Removing many files slows down the disk of the sandboxes. Each driver has
 * its own limit, so that a shared directory whose server is down does not delay removals on the disk.
 */
const atOnce = 2

export class VolumeKeeper implements Disposable {
  readonly #parts: VolumeKeeperParts
  /** Volumes whose removal is running or queued. There are at most as many as control's list contains. */
  readonly #known = new Set<string>()
  readonly #waiting: Record<VolumeDriver, VolumeAssignment[]> = { disk: [], directory: [] }
  readonly #running: Record<VolumeDriver, number> = { disk: 0, directory: 0 }

  constructor(parts: VolumeKeeperParts) {
    this.#parts = parts
  }

  takeAll(assignments: readonly VolumeAssignment[]): void {
    for (const assignment of assignments) {
      const { volumeId, driver } = assignment
      if (this.#known.has(volumeId)) continue
      this.#known.add(volumeId)
      this.#waiting[driver].push(assignment)
      this.#goOn(driver)
    }
  }

  #goOn(driver: VolumeDriver): void {
    if (this.#running[driver] >= atOnce) return
    const next = this.#waiting[driver].shift()
    if (next === undefined) return
    this.#running[driver] += 1
    void this.#remove(next).finally(() => {
      this.#running[driver] -= 1
      this.#goOn(driver)
    })
  }

  async #remove(assignment: VolumeAssignment): Promise<void> {
    const { host, report, log } = this.#parts
    const { volumeId } = assignment
    try {
      await host.removeVolume(assignment)
      report({ volumeId, state: 'absent' })
    } catch (error) {
      log.warn({ err: error, volumeId }, 'a volume could not be removed; it is tried again')
    } finally {
      this.#known.delete(volumeId)
    }
  }

  /** Starts no further removals. Control requests each unfinished removal again from this host's next runner. */
  [Symbol.dispose]() {
    for (const waiting of Object.values(this.#waiting)) waiting.length = 0
  }
}
