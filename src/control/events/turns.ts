// Queues work: in order within an organization, concurrently between organizations. The number of places is limited. An
// organization may use a ninth of the places that are free: a tenth of all places if it is alone, and fewer if others
// use some. An organization without queued work gets a place whenever one is free.
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'

/** Queues `work`. Returns false if no place was free; then `work` is not run. Failed work does not stop the queue. */
export type TakeTurn = (organizationId: string, work: () => Promise<void>) => boolean

export const createTurns = (all: number): TakeTurn => {
  /** Places of running and waiting work together. */
  const places = new Budget({ all, ofFree: 1 / 9 })
  const queue = new FairQueue({ ofOne: 1 })
  return (organizationId, work) => {
    if (!places.take(organizationId)) return false
    const leave = () => places.give(organizationId)
    queue.run(work, { owner: organizationId }).then(leave, leave)
    return true
  }
}
