// Queues work so that each sandbox has only one piece of work running.
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'

/** Maximum number of calls that wait for one sandbox. Further calls are refused: a client probably repeats its calls in a loop. */
const waitingLimit = 31

export const oneAtATime = () => {
  const places = new Budget<string | undefined>({ each: waitingLimit })
  const full = (sandboxId = '') => new Error(`Too much is waiting for ${sandboxId}.`)
  const queue = new FairQueue({ ofOne: 1, waiting: { places, full } })
  return <T>(sandboxId: string, work: () => Promise<T>): Promise<T> => queue.run(work, { owner: sandboxId })
}
