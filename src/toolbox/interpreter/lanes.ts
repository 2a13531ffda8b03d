// A context runs one execution at a time. A lane is the context's queue. Lanes need no storage: a restart of the gate closes the
// sockets of all callers anyway.
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'
import type { ToolboxSandbox } from '../sandbox.ts'

/** Maximum number of waiting executions per context. */
const waitingMax = 64

/** The queue of one context. `isClosed`: the context was deleted while executions waited or ran. */
export type Lane = { isClosed: boolean }

export class LaneFull extends Error {}

const queue = new FairQueue<Lane>({
  ofOne: 1,
  waiting: {
    places: new Budget({ each: waitingMax }),
    full: () => new LaneFull('too many executions wait for this context'),
  },
})

const lanes = new Map<string, Lane>()

const keyOf = ({ id }: ToolboxSandbox, contextId: string) => JSON.stringify([id, contextId])

/** Closes and removes the queue of a deleted context. An execution that comes afterwards gets a new queue. */
export const closeLane = (sandbox: ToolboxSandbox, contextId: string): void => {
  const key = keyOf(sandbox, contextId)
  const lane = lanes.get(key)
  if (lane) lane.isClosed = true
  lanes.delete(key)
}

/** Runs an execution after the earlier executions of its context have ended. Throws `LaneFull` if too many wait. */
export const runInLane = async (
  sandbox: ToolboxSandbox,
  contextId: string,
  work: (lane: Lane) => Promise<void>,
): Promise<void> => {
  const key = keyOf(sandbox, contextId)
  const lane = lanes.get(key) ?? { isClosed: false }
  lanes.set(key, lane)
  try {
    await queue.run(() => work(lane), { owner: lane })
  } finally {
    if (!queue.has(lane) && lanes.get(key) === lane) lanes.delete(key)
  }
}
