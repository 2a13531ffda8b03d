// Runs batches of test files in parallel lanes. A lane runs one batch at a time. It takes its next batch from the first
// of its queues that is not empty. Files of a queue that belongs to only one lane never run at the same time.
import type { Batch } from './test-batches.ts'

export type Queue = Batch[]

/** For each lane, its queues in order of preference. */
export type Lanes = readonly (readonly Queue[])[]

/** Runs all batches. Each batch is in one queue, which several lanes may share. */
export const runInLanes = async (lanes: Lanes, run: (batch: Batch) => Promise<void>): Promise<void> => {
  const work = async (queues: readonly Queue[]) => {
    const next = () => queues.find(({ length }) => length > 0)?.shift()
    for (let batch = next(); batch !== undefined; batch = next()) await run(batch)
  }
  await Promise.all(lanes.map(work))
}
