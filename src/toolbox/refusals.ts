// Translates failures of jobs in the sandbox into Problems for the caller.
import { notStarted, Problem } from '#src/problems.ts'
import { AgentGone, AgentRefused, StartFailed } from './agent/agent.ts'
import { callersFault } from './running/start-failure.ts'

/** Translates any error into a Problem. */
export const asTold = (error: unknown): Problem => {
  if (error instanceof Problem) return error
  if (error instanceof AgentGone) return notStarted('The sandbox was stopped or deleted meanwhile.', { cause: error })
  // The request is larger than the agent's protocol allows. That maximum is far above what the kernel accepts for a command.
  if (error instanceof RangeError) {
    return new Problem('bad_request', 'The environment variables are larger than the kernel accepts.')
  }
  if (!(error instanceof AgentRefused)) {
    return new Problem('sandbox_silent', undefined, { cause: error })
  }
  if (error.stage === 'ending') return notStarted('The sandbox is stopping.')
  if (error.stage === 'busy')
    return new Problem('rate_limited', 'This sandbox has too many calls in progress. Try again later.')
  if (error.stage === 'job' && error.errno === 'ENOENT') return new Problem('not_found')
  return new Problem('unprocessable', `The sandbox cannot do that: ${error.errno}.`, { cause: error })
}

/** Translates a failed start into a Problem. `missing` is the sentence for a program that does not exist. */
export const asNotStarted = (error: unknown, cwd: string, user: string, missing: string): Problem => {
  if (!(error instanceof StartFailed)) return asTold(error)
  const fault = callersFault(error, { argv: [], env: {}, cwd, user, mergeOutput: false })
  if (fault) return fault
  const sentence = error.errno === 'ENOENT' ? missing : `The sandbox could not start the program: ${error.errno}.`
  return new Problem('unprocessable', sentence, { cause: error })
}
