// Runs one command to its end. Whatever happens, no process of it is left behind on our account: the deadline and a
// caller who hangs up both kill its whole group.
import { constants } from 'node:os'
import { Problem } from '#src/problems.ts'
import { type Agent, type CommandSpec, type Exit, type RunningCommand, StartFailed } from '../agent/agent.ts'
import { beforeDeadline, type Deadline } from './deadline.ts'

/** The agent did not answer, or went away in the middle: the sandbox stopped. */
const asStopped = (error: unknown) =>
  error instanceof StartFailed || error instanceof Problem
    ? error
    : new Problem('conflict', 'The sandbox stopped before the command had ended.', { cause: error })

const end = (command: RunningCommand) => {
  command.kill(constants.signals.SIGKILL)
  command.close()
}

/** Starts within the deadline; a start that comes too late is undone. */
const start = (agent: Agent, spec: CommandSpec, deadline: Deadline) => {
  const starting = agent.exec(spec)
  return beforeDeadline(starting, deadline).catch((error) => {
    starting.then(end, () => undefined)
    throw asStopped(error)
  })
}

/** `take` sees every piece of output in order. Throws StartFailed, or the deadline's reason. */
export const runToEnd = async (
  agent: Agent,
  spec: CommandSpec,
  deadline: Deadline,
  take: (data: Buffer) => void,
): Promise<Exit> => {
  const command = await start(agent, spec, deadline)
  const drain = async () => {
    for await (const { data } of command) take(data)
    return command.exit
  }
  command.exit.catch(() => undefined)
  try {
    return await beforeDeadline(drain(), deadline)
  } catch (error) {
    end(command)
    throw asStopped(error)
  }
}
