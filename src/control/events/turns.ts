// Queues work: in order within an organization, concurrently between organizations. The places are bounded.
// An organization may hold a ninth of the places that are free: a tenth of all if it is alone, and less if others wait.
// So an organization with nothing queued gets a place as long as one is free.
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'

/** Queues `work`. Returns false if there was no place; then the work is not done. Failed work does not stop the queue. */
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
