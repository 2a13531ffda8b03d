// Translates the agent's refusals of requests about sessions into Problems for the caller.
import { notStarted, Problem } from '#src/problems.ts'
import { AgentGone, AgentRefused, ListTooLong, StartFailed } from '../agent/agent.ts'
import { asTold as asToldOfAny } from '../refusals.ts'

const refused: Record<string, () => Problem> = {
  ENOENT: () => new Problem('not_found', 'There is no such session: session not found.'),
  ESRCH: () => new Problem('process_not_found', 'There is no such command in this session.'),
  EEXIST: () => new Problem('already_exists', 'A session with this name already exists.'),
  EPIPE: () => new Problem('session_ended'),
  EALREADY: () => new Problem('command_completed'),
  ENOTTY: () => new Problem('conflict', 'This command takes no input: it was not started with runAsync.'),
}

const busy: Record<string, string> = {
  EAGAIN: 'This sandbox has the maximum number of sessions. Delete a session first.',
  ENOBUFS: 'Too many commands or too much input are waiting in this session. Try again later.',
}

/** Translates any error into a Problem. */
export const asTold = (error: unknown): Problem => {
  if (error instanceof AgentGone) return notStarted('The sandbox was stopped or deleted meanwhile.', { cause: error })
  if (error instanceof StartFailed) {
    const what = error.stage === 'user' ? 'The user of this sandbox does not exist in it' : 'No shell could be started'
    return new Problem('unprocessable', `${what}: ${error.errno}.`, { cause: error })
  }
  if (error instanceof ListTooLong) {
    const reason = 'The sessions have too many commands for one answer. Ask for one session, or delete some sessions.'
    return new Problem('unprocessable', reason, { cause: error })
  }
  if (!(error instanceof AgentRefused)) return asToldOfAny(error)
  const refusal = error.stage === 'job' ? refused[error.errno] : undefined
  if (refusal) return refusal()
  if (error.stage === 'busy') return new Problem('rate_limited', busy[error.errno] ?? 'This sandbox is too busy.')
  return asToldOfAny(error)
}

/** Waits for the agent's answer. If it is a refusal, throws a Problem for the caller. */
export const told = <T>(asking: Promise<T>): Promise<T> =>
  asking.catch((error: unknown) => {
    throw asTold(error)
  })
