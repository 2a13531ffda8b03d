// Queues work: in order within an organization, concurrently between organizations. Each task takes a place from when it is
// queued until it is done, and the number of places is limited. An organization may use a ninth of the places that are
// free: a tenth of all places if it is alone, fewer otherwise. An organization without queued work gets a
// place whenever one is free.
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'

/** Queues `work`. Returns false if no place was free; then `work` is not run. Failed work does not stop the queue. */
export type TakeTurn = (organizationId: string, work: () => Promise<void>) => boolean

export const createTurns = (all: number): TakeTurn => {
  /** The places, which running tasks and queued tasks take. */
  const places = new Budget({ all, ofFree: 1 / 9 })
  const queue = new FairQueue({ ofOne: 1 })
  return (organizationId, work) => {
    if (!places.take(organizationId)) return false
    const leave = () => places.give(organizationId)
    queue.run(work, { owner: organizationId }).then(leave, leave)
    return true
  }
}
