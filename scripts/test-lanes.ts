// Test files share the machine in lanes: a lane runs one file after the other and takes the next from the first of its
// queues that still has one. A queue that only one lane has is run in order and never beside itself.

export type Queue = string[]

/** Runs everything; every file is in one queue, which several lanes may have. */
export const runInLanes = async (
  lanes: readonly (readonly Queue[])[],
  run: (file: string) => Promise<void>,
): Promise<void> => {
  const work = async (queues: readonly Queue[]) => {
    const next = () => queues.find(({ length }) => length > 0)?.shift()
    for (let file = next(); file !== undefined; file = next()) await run(file)
  }
  await Promise.all(lanes.map(work))
}
