// Queues the work of sending events. The work of one organization runs in order; different organizations run at the
// same time. The total number of running and queued tasks is limited. One organization may have at most a ninth as many
// tasks as there are free places, so places always remain for other organizations.
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'

/**
 * Queues `work`, and returns true. If there is no room, returns false and does not run `work`. The queue goes on after
 * failed work.
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
