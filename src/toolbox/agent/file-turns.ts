// An agent serves 256 file operations at a time and refuses more. One client often asks for more at once, so calls wait here
// until the agent has room.
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'
import { AgentRefused } from './connection.ts'

/**
 * Parallel operations per sandbox. Writes have separate room: an upload may come from a file that is being read, so a writer must
 * never wait for readers.
 */
const lanes = { write: new FairQueue({ ofOne: 64 }), read: new FairQueue({ ofOne: 128 }) }
/** Limits of waiting operations. */
const places = new Budget({ each: 1000, all: 10_000, sure: 10 })
const longestWaitMs = 30_000

/**
 * Waits for a turn, which lasts until it is disposed of. Throws the agent's refusal `busy` if too many operations wait, or after
 * 30 s.
 */
export const takeTurn = async (kind: keyof typeof lanes, socketPath: string): Promise<Disposable> => {
  if (!places.take(socketPath)) throw new AgentRefused('busy', 'EAGAIN')
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  try {
    await new Promise<void>((begin, giveUp) => {
      const work = () => {
        begin()
        return over
      }
      lanes[kind].run(work, { owner: socketPath, signal: AbortSignal.timeout(longestWaitMs) }).catch(giveUp)
    })
  } catch {
    throw new AgentRefused('busy', 'EAGAIN')
  } finally {
    places.give(socketPath)
  }
  return { [Symbol.dispose]: end }
}
