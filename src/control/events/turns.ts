// Work that waits for its turn: in order within an organization, and beside that of others. The places are bounded, and each
// organization may fill a ninth of what is left free: alone a tenth of all, and less the more others wait. So whoever
// has nothing waiting finds a place as long as there is one.

/** Answers whether there was a place; without one the work is not done. `work` may fail: the next goes on. */
export type TakeTurn = (organizationId: string, work: () => Promise<void>) => boolean

const shareOfFree = 1 / 9

export const createTurns = (places: number): TakeTurn => {
  const queues = new Map<string, { waiting: number; last: Promise<void> }>()
  let waiting = 0

  return (organizationId, work) => {
    const queue = queues.get(organizationId) ?? { waiting: 0, last: Promise.resolve() }
    if (queue.waiting >= (places - waiting) * shareOfFree) return false
    queues.set(organizationId, queue)
    waiting += 1
    queue.waiting += 1
    const leave = () => {
      waiting -= 1
      queue.waiting -= 1
      if (queue.waiting === 0) queues.delete(organizationId)
    }
    queue.last = queue.last.then(work).then(leave, leave)
    return true
  }
}
