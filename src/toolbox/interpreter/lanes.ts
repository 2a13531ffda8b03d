// Each context runs one execution at a time, in order of arrival. A lane exists while it has executions. It holds only callers on
// open sockets, so a restart of the gate loses nothing else.
import type { ToolboxSandbox } from '../sandbox.ts'

/** Maximum of waiting executions per context. */
const waitingMax = 64

export class Lane {
  #tail: Promise<unknown> = Promise.resolve()
  #inside = 0
  /** True if the context was deleted while the lane had executions. */
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
