// Runs one command to its end. At the deadline, or when the caller disconnects, the whole process group is killed.
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

/** Translates an error of the agent into the error that the caller gets. */
const asTold = (error: unknown): unknown => {
  if (error instanceof Problem || error instanceof StartFailed) return error
  if (error instanceof AgentGone) {
    return notStarted('The sandbox was stopped or deleted before the command had ended.', { cause: error })
  }
  // The request exceeds the maximum of the agent's protocol, which is far more than the kernel accepts.
  if (error instanceof RangeError) return new StartFailed('exec', 'E2BIG')
  if (!(error instanceof AgentRefused)) return new Problem('sandbox_silent', undefined, { cause: error })
  if (error.stage === 'busy')
    return new Problem('rate_limited', 'This sandbox runs as many commands as it can. Try again later.')
  if (error.stage === 'ending') return notStarted('The sandbox is stopping.')
  // The sandbox could not start a process, for example at its process limit. Report this like a program that cannot start.
  return new StartFailed('exec', error.errno)
}

const end = (command: RunningCommand) => {
  command.kill(constants.signals.SIGKILL)
  command.close()
}

/**
 * Starts a command. If the command starts after the deadline, kills the command. Throws StartFailed, or a Problem (the error that
 * the caller sees).
 */
export const startWithin = (agent: Agent, spec: CommandSpec, deadline: Deadline): Promise<RunningCommand> => {
  const starting = span('agent exec', {}, () => agent.exec(spec, deadline.signal))
  return beforeDeadline(starting, deadline).catch((error) => {
    starting.then(end, () => undefined)
    throw deadline.signal.aborted ? deadline.signal.reason : asTold(error)
  })
}

type TakeOutput = (data: Buffer, stream: Output['stream']) => void

/**
 * Passes all output of the command to `take`, and returns how the command ended. At the deadline, calls `stop` and throws the
 * Problem for the caller. By default, `stop` kills the command. After the throw, `take` may still get output until the command
 * ends.
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

/** If a command was killed at its timeout, adds the output so far to the error 408. */
export const withOutputSoFar = async <T>(work: Promise<T>, output: Pick<BoundedOutput, 'text'>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'execution_timeout') throw error
    throw new Problem(error.code, error.message, { cause: error, fields: { output: output.text() } })
  }
}

/** Starts a command and follows it to its end. Use this for small requests, because `spec` stays in memory until then. */
export const runToEnd = async (
  agent: Agent,
  spec: CommandSpec,
  deadline: Deadline,
  take: TakeOutput,
  stop?: (command: RunningCommand) => void,
): Promise<Exit> => await followToEnd(await startWithin(agent, spec, deadline), deadline, take, stop)
