// The uploads to one sandbox. They continue while the user looks at other pages. The browser reads each file while sending it.
import type { ToolboxOwner } from '../../../api/toolbox-client.ts'
import type { Dropped } from './dropped-files.ts'
import { join } from './paths.ts'

export type Upload = {
  id: number
  path: string
  size: number
  sent: number
  state: 'waiting' | 'sending' | 'done' | 'failed' | 'cancelled'
  error?: unknown
}

export type SendFile = (
  owner: ToolboxOwner,
  path: string,
  file: File,
  options: { signal: AbortSignal; onProgress: (sent: number) => void },
) => Promise<void>

/** How many files are sent at the same time. */
const atOnce = 2

export class Uploads {
  readonly #owner: ToolboxOwner
  readonly #send: SendFile
  readonly #listeners = new Set<() => void>()
  readonly #waiting: { id: number; file: File }[] = []
  #all: readonly Upload[] = []
  #nextId = 1
  #sending = 0
  #stop = new AbortController()
  /** Called when no upload is waiting or running any more, whether the uploads have succeeded or failed. */
  onArrived: () => void = () => {}

  constructor(owner: ToolboxOwner, send: SendFile) {
    this.#owner = owner
    this.#send = send
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly snapshot = (): readonly Upload[] => this.#all

  get isBusy(): boolean {
    return this.#sending > 0 || this.#waiting.length > 0
  }

  add(directory: string, files: readonly Dropped[]): void {
    const added = files.map(({ file, path }): Upload => {
      const id = this.#nextId++
      this.#waiting.push({ id, file })
      return { id, path: join(directory, path), size: file.size, sent: 0, state: 'waiting' }
    })
    this.#change([...this.#all, ...added])
    for (let i = this.#sending; i < atOnce; i++) void this.#work()
  }

  /** Stops the running uploads and drops the waiting uploads. Files that are uploaded already stay in the sandbox. */
  cancel(): void {
    this.#stop.abort()
    this.#stop = new AbortController()
    this.#waiting.length = 0
    this.#change(
      this.#all.map((each) =>
        each.state === 'waiting' || each.state === 'sending' ? { ...each, state: 'cancelled' } : each,
      ),
    )
  }

  /** Removes the uploads that have ended from the list. */
  clear(): void {
    this.#change(this.#all.filter(({ state }) => state === 'waiting' || state === 'sending'))
  }

  async #work(): Promise<void> {
    this.#sending += 1
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const { id, file } = next
      const { signal } = this.#stop
      const { path } = this.#update(id, { state: 'sending' })
      try {
        await this.#send(this.#owner, path, file, { signal, onProgress: (sent) => this.#update(id, { sent }) })
        this.#update(id, { state: 'done', sent: file.size })
      } catch (error) {
        if (!signal.aborted) this.#update(id, { state: 'failed', error })
      }
    }
    this.#sending -= 1
    if (this.#sending === 0) this.onArrived()
  }

  #update(id: number, part: Partial<Upload>): Upload {
    const index = this.#all.findIndex((each) => each.id === id)
    const changed = { ...this.#all[index]!, ...part }
    if (index >= 0) this.#change(this.#all.with(index, changed))
    return changed
  }

  #change(all: readonly Upload[]): void {
    this.#all = all
    for (const listener of this.#listeners) listener()
  }
}
