// Each context runs one execution at a time, in the order in which they came. A lane is there while somebody is in it; what
// it holds are callers on open sockets, and nothing that would be missed after a restart.
import type { ToolboxSandbox } from '../sandbox.ts'

/** More than this do not wait. */
const waitingMax = 64

export class Lane {
  #tail: Promise<unknown> = Promise.resolve()
  #inside = 0
  /** The context was deleted while somebody was in the lane. */
  isClosed = false
  readonly #onEmpty: () => void

  constructor(onEmpty: () => void) {
    this.#onEmpty = onEmpty
  }

  get isFull(): boolean {
    return this.#inside > waitingMax
  }

  close(): void {
    this.isClosed = true
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#inside += 1
    const turn = this.#tail.then(work)
    this.#tail = turn.catch(() => undefined)
    try {
      return await turn
    } finally {
      this.#inside -= 1
      if (this.#inside === 0) this.#onEmpty()
    }
  }
}

const lanes = new Map<string, Lane>()

const keyOf = ({ id }: ToolboxSandbox, contextId: string) => JSON.stringify([id, contextId])

export const laneOf = (sandbox: ToolboxSandbox, contextId: string): Lane | undefined =>
  lanes.get(keyOf(sandbox, contextId))

export const enterLane = (sandbox: ToolboxSandbox, contextId: string): Lane => {
  const key = keyOf(sandbox, contextId)
  const found = lanes.get(key)
  if (found && !found.isClosed) return found
  const made = new Lane(() => {
    if (lanes.get(key) === made) lanes.delete(key)
  })
  lanes.set(key, made)
  return made
}
