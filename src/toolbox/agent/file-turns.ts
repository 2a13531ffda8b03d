// An agent serves 256 file operations at a time and refuses more. One client may start more than 256 at once. So calls wait in
// this queue until the agent can serve them.
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'
import { AgentRefused } from './connection.ts'

/** Limits of waiting operations: per sandbox, in total, and the share that each sandbox always gets. */
const places = new Budget<string | undefined>({ each: 1000, all: 10_000, sure: 10 })
const waiting = { places, full: () => new AgentRefused('busy', 'EAGAIN') }
/**
 * Maximum number of parallel operations per sandbox. Reads and writes have separate limits, because a caller may send a
 * download on as an upload. With a common limit, such downloads could take all places and then wait for uploads that get no
 * place.
 */
const queues = { write: new FairQueue({ ofOne: 64, waiting }), read: new FairQueue({ ofOne: 128, waiting }) }
const longestWaitMs = 30_000

/**
 * Waits until a file operation of this kind may start. Dispose of the result when the operation has ended, so that the next one
 * can start. Throws the error `busy` if too many operations wait, or after 30 s.
 */
export const takeTurn = (kind: keyof typeof queues, socketPath: string): Promise<Disposable> =>
  queues[kind].take(socketPath, AbortSignal.timeout(longestWaitMs)).catch(() => {
    throw waiting.full()
  })
