// Saves the disks of stopped sandboxes in the background (docs/adr/0043-saved-at-stop.md). Control requests a save until it has
// received a report about the save. Therefore the runner need not record on disk which saves it must make.
import type { Logger } from '#src/kit/log.ts'
import { FairQueue } from '#src/kit/queue.ts'
import { idOf, isRead, type ListedSandbox, type UnreadableSandbox } from '#src/runner/control-link/assignment.ts'
import type { Assignment, SavedDisk, UnsavedDisk, WrittenArchive } from '#src/wire/runner-link.ts'
import type { Host } from '../host.ts'

type SaverParts = {
  host: Pick<Host, 'save'>
  onSaved: (saved: SavedDisk) => void
  /** Called when the first attempt of a save fails. The failures of its retries are only logged. */
  onUnsaved: (unsaved: UnsavedDisk) => void
  log: Logger
  /** Pauses in milliseconds before the first and later retries of a save. The last pause is used for all further retries. */
  retryMs?: readonly number[]
}

type Wanted = {
  assignment: Assignment
  archiveId: string
  failures: number
  /** Aborted when the save is not needed any more. The save then leaves the queue. */
  forgotten: AbortController
  retry?: NodeJS.Timeout
  made?: WrittenArchive
}

/** Maximum number of saves that run at the same time. Each organization has at most one of these saves. */
const atOnce = 2

export class Saver implements Disposable {
  readonly #parts: Required<SaverParts>
  readonly #queue = new FairQueue({ atOnce, ofOne: 1 })
  readonly #wanted = new Map<string, Wanted>()
  #isClosed = false

  constructor(parts: SaverParts) {
    this.#parts = { retryMs: [30_000, 120_000, 600_000], ...parts }
  }

  /**
   * Reads an assignment from control. Begins the save with the id `save.id`, unless this save has begun. Drops every save of the
   * sandbox with a different id.
   */
  take(assignment: Assignment): void {
    const { sandboxId, target, save } = assignment
    const known = this.#wanted.get(sandboxId)
    if (target !== 'stopped' || save === undefined) this.#forget(sandboxId)
    else if (known?.archiveId !== save.id) {
      this.#forget(sandboxId)
      const wanted: Wanted = { assignment, archiveId: save.id, failures: 0, forgotten: new AbortController() }
      this.#wanted.set(sandboxId, wanted)
      this.#begin(wanted)
    }
    // Control requests the save again, so control has not received the report.
    else if (known.made !== undefined) this.#parts.onSaved({ sandboxId, archive: known.made })
  }

  takeAll(listed: readonly (ListedSandbox | UnreadableSandbox)[]): void {
    for (const one of listed) if (isRead(one)) this.take(one.assignment)
    const ids = new Set(listed.map(idOf))
    for (const sandboxId of this.#wanted.keys()) if (!ids.has(sandboxId)) this.#forget(sandboxId)
  }

  #begin(wanted: Wanted): void {
    const { signal } = wanted.forgotten
    const turn = { owner: wanted.assignment.organizationId, signal }
    this.#queue.run(() => this.#save(wanted), turn).catch(() => undefined)
  }

  async #save(wanted: Wanted): Promise<void> {
    const { assignment, archiveId } = wanted
    const { sandboxId } = assignment
    const isWanted = () => !this.#isClosed && this.#wanted.get(sandboxId) === wanted
    if (!isWanted()) return
    try {
      const made = await this.#parts.host.save(assignment)
      if (!isWanted()) return
      if (made === undefined) {
        // A verb has interrupted the save. If control still wants the save after the verb, control's next list requests it again.
        this.#wanted.delete(sandboxId)
        return
      }
      wanted.made = made
      this.#parts.onSaved({ sandboxId, archive: made })
    } catch (error) {
      if (!isWanted()) return
      this.#parts.log.warn(
        { err: error, sandboxId, failures: wanted.failures + 1 },
        'a stopped disk could not be saved',
      )
      if (wanted.failures === 0)
        this.#parts.onUnsaved({ sandboxId, archiveId, reason: error instanceof Error ? error.message : 'It failed.' })
      this.#later(wanted)
    }
  }

  #later(wanted: Wanted): void {
    const { retryMs } = this.#parts
    const waitMs = retryMs[wanted.failures] ?? retryMs.at(-1) ?? 0
    wanted.failures += 1
    wanted.retry = setTimeout(() => this.#begin(wanted), waitMs).unref()
  }

  #forget(sandboxId: string): void {
    const known = this.#wanted.get(sandboxId)
    clearTimeout(known?.retry)
    known?.forgotten.abort()
    this.#wanted.delete(sandboxId)
  }

  [Symbol.dispose]() {
    this.#isClosed = true
    for (const sandboxId of this.#wanted.keys()) this.#forget(sandboxId)
  }
}
