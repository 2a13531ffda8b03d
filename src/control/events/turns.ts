// Queues the work of sending events. The work of one organization runs in order, and running and queued tasks are limited. An
// organization's tasks may be at most a ninth of the number of free places. So places remain for other organizations.
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'

/** Queues `work`, and returns true. If there is no room, returns false. Failed work does not stop the queue. */
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
