// Runs batches of test files in several lanes (workers) at the same time. Each lane runs one batch at a time. Batches that must not
// run at the same time are in a queue that only one lane has.
import type { Batch } from './test-batches.ts'

export type Queue = Batch[]

/** Each lane (worker) is a list of the queues from which it takes batches, the preferred queue first. */
export type Lanes = readonly (readonly Queue[])[]

/**
 * Runs all batches of test files in the queues of `lanes`. Several lanes (workers) may share a queue; each batch runs only once.
 */
export const runInLanes = async (lanes: Lanes, run: (batch: Batch) => Promise<void>): Promise<void> => {
  const work = async (queues: readonly Queue[]) => {
    const next = () => queues.find(({ length }) => length > 0)?.shift()
    for (let batch = next(); batch !== undefined; batch = next()) await run(batch)
  }
  await Promise.all(lanes.map(work))
}
