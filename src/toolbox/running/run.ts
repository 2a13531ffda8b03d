// Runs one command to its end. Whatever happens, no process of it is left behind on our account: the deadline and a
// caller who hangs up both kill its whole group.
import { constants } from 'node:os'
import { span } from '#src/kit/telemetry/telemetry.ts'
import { notStarted, Problem } from '#src/problems.ts'
import {
  type Agent,
  AgentGone,
  AgentRefused,
  type CommandSpec,
  type Exit,
  type Output,
  type RunningCommand,
  StartFailed,
} from '../agent/agent.ts'
import { beforeDeadline, type Deadline } from './deadline.ts'
import type { BoundedOutput } from './output.ts'

/** What went wrong between us and the agent, in words for the caller. */
const asTold = (error: unknown): unknown => {
  if (error instanceof Problem || error instanceof StartFailed) return error
  if (error instanceof AgentGone) {
    return notStarted('The sandbox stopped before the command had ended.', { cause: error })
  }
  // Larger than a request to the agent can be, which is far more than the kernel takes.
  if (error instanceof RangeError) return new StartFailed('exec', 'E2BIG')
  if (!(error instanceof AgentRefused)) return new Problem('sandbox_silent', undefined, { cause: error })
  if (error.stage === 'busy') return new Problem('rate_limited', 'This sandbox runs as many commands as it can.')
  if (error.stage === 'ending') return notStarted('The sandbox is stopping.')
  // Such as no more processes: the same to the caller as a shell that cannot start.
  return new StartFailed('exec', error.errno)
}

const end = (command: RunningCommand) => {
  command.kill(constants.signals.SIGKILL)
  command.close()
}

/** Starts within the deadline; a start that comes too late is undone. Throws StartFailed, or the deadline's reason. */
export const startWithin = (agent: Agent, spec: CommandSpec, deadline: Deadline): Promise<RunningCommand> => {
  const starting = span('agent exec', {}, () => agent.exec(spec, deadline.signal))
  return beforeDeadline(starting, deadline).catch((error) => {
    starting.then(end, () => undefined)
    throw deadline.signal.aborted ? deadline.signal.reason : asTold(error)
  })
}

type TakeOutput = (data: Buffer, stream: Output['stream']) => void

/**
 * `take` sees every piece of output in order. `stop` ends a command that nobody waits for any more; one that only asks it
 * to end leaves `take` being called. Throws the deadline's reason.
 */
export const followToEnd = async (
  command: RunningCommand,
  deadline: Deadline,
  take: TakeOutput,
  stop: (command: RunningCommand) => void = end,
): Promise<Exit> => {
  const drain = async () => {
    for await (const { data, stream } of command) take(data, stream)
    return command.exit
  }
  command.exit.catch(() => undefined)
  try {
    return await beforeDeadline(drain(), deadline)
  } catch (error) {
    stop(command)
    throw deadline.signal.aborted ? deadline.signal.reason : asTold(error)
  }
}

/** A command that was killed at its timeout has said something until then: the 408 has it as `output`. */
export const withOutputSoFar = async <T>(work: Promise<T>, output: Pick<BoundedOutput, 'text'>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'execution_timeout') throw error
    throw new Problem(error.code, error.message, { cause: error, fields: { output: output.text() } })
  }
}

/** Both, for a command that is small: what it was started by is kept until it ends. */
export const runToEnd = async (
  agent: Agent,
  spec: CommandSpec,
  deadline: Deadline,
  take: TakeOutput,
  stop?: (command: RunningCommand) => void,
): Promise<Exit> => await followToEnd(await startWithin(agent, spec, deadline), deadline, take, stop)
