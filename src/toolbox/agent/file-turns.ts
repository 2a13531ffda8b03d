// Queues file operations: an agent serves only 256 at a time, and one client may start more.
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'
import { AgentRefused } from './connection.ts'

/** Limits of waiting operations: per sandbox, in total, and the share that each sandbox always gets. */
const places = new Budget<string | undefined>({ each: 1000, all: 10_000, sure: 10 })
const waiting = { places, full: () => new AgentRefused('busy', 'EAGAIN') }
/**
 * Maximum number of parallel operations per sandbox. Writes and reads have separate limits, because a caller may upload the bytes
 * of a running download. If downloads could take the places of uploads, both would wait for each other.
 */
const queues = { write: new FairQueue({ ofOne: 64, waiting }), read: new FairQueue({ ofOne: 128, waiting }) }
const longestWaitMs = 30_000

/**
 * Waits until a file operation may start. Dispose of the result when the operation ends. Throws `busy` if too many wait, or after
 * 30 s.
 */
export const takeTurn = (kind: keyof typeof queues, socketPath: string): Promise<Disposable> =>
  queues[kind].take(socketPath, AbortSignal.timeout(longestWaitMs)).catch(() => {
    throw waiting.full()
  })
