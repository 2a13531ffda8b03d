// Queues work: in order within an organization, concurrently between organizations. The places are bounded.
// An organization may hold a ninth of the places that are free: a tenth of all if it is alone, and less if others wait.
// So an organization with nothing queued gets a place as long as one is free.

/** Queues `work`. Returns false if there was no place; then the work is not done. Failed work does not stop the queue. */
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
