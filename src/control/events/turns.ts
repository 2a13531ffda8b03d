// Queues work: in order within an organization, concurrently between organizations. The total number of tasks, running
// and queued, is limited. An organization is refused while its own tasks are more than a ninth of the free capacity. So
// one organization never fills the queue for others.
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'

/**
 * Queues `work`. Returns false if there was no capacity, and then does not run `work`. Failed work does not stop the
 * queue.
 */
export type TakeTurn = (organizationId: string, work: () => Promise<void>) => boolean

export const createTurns = (all: number): TakeTurn => {
  const capacity = new Budget({ all, ofFree: 1 / 9 })
  const queue = new FairQueue({ ofOne: 1 })
  return (organizationId, work) => {
    if (!capacity.take(organizationId)) return false
    const leave = () => capacity.give(organizationId)
    queue.run(work, { owner: organizationId }).then(leave, leave)
    return true
  }
}
