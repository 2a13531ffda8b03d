// Runs test files in parallel lanes. A lane runs one file at a time and takes the next from its first queue that is not
// empty. The files of a queue that only one lane has never run at the same time.

export type Queue = string[]

/** Runs all files. Each file is in one queue, which several lanes may share. */
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
