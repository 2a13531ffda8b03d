// `process/execute`: runs one shell command; returns its whole output in order of arrival, and its exit code.
import { Problem } from '#src/problems.ts'
import { plainWordsOf } from '#src/toolbox/agent/plain.ts'
import type { Deadline } from '#src/toolbox/running/deadline.ts'
import { checkEnvironment } from '#src/toolbox/running/environment.ts'
import { watchMemory } from '#src/toolbox/running/out-of-memory.ts'
import { BoundedOutput } from '#src/toolbox/running/output.ts'
import { followToEnd, startWithin, withOutputSoFar } from '#src/toolbox/running/run.ts'
import { callersFault } from '#src/toolbox/running/start-failure.ts'
import { type CommandSpec, type RunningCommand, StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import type { Given } from '../held-bodies.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import type { ExecuteRequest, ExecuteResponse } from './schemas.ts'

const shells = ['bash', 'sh'] as const

/**
 * Maximum length in bytes of a command that is passed in a variable, for which the kernel accepts 128 KiB. A longer command is
 * passed on the shell's standard input.
 */
const variableBytes = 100 * 1024
const evalStdin = 'eval "$(cat)"'

/** The variable that passes the command to the shell. The shell unsets it first, so that no program inherits it. */
const commandVariable = '_ALCOVE_COMMAND'
const evalVariable = `eval "unset ${commandVariable}; $${commandVariable}"`

type Way = Pick<CommandSpec, 'argv' | 'stdin'> & { variables?: Record<string, string> }

/** A shell must not get the command's text as an argument: `pkill -f NAME` searches all arguments, and would kill that shell. */
const throughShell = (shell: string, command: string): Way => {
  if (Buffer.byteLength(command) > variableBytes) {
    return { argv: [shell, '-c', evalStdin], stdin: Buffer.from(command) }
  }
  return { argv: [shell, '-c', evalVariable], variables: { [commandVariable]: command } }
}

/** Throws a 400 for errors that can be found before a process is started. */
export const checkCommand = ({ command, envs }: ExecuteRequest): void => {
  if (command.trim() === '') throw new Problem('bad_request', 'body.command must not be blank')
  checkEnvironment(envs ?? {})
}

/**
 * Starts the command, or returns why it could not start. Keeps no reference to the request body, so that its memory can be freed
 * while the command runs.
 */
const start = async (
  sandbox: ToolboxSandbox,
  { body }: Given<ExecuteRequest>,
  deadline: Deadline,
): Promise<RunningCommand | string> => {
  const { command, cwd, envs } = body
  const env = environmentOf(sandbox, envs ?? {})
  const startBy = async ({ variables, ...way }: Way): Promise<RunningCommand | StartFailed> => {
    const { user } = sandbox.assignment
    const spec: CommandSpec = {
      ...way,
      env: { ...env, ...variables },
      ...(cwd ? { cwd } : {}),
      user,
      mergeOutput: true,
    }
    try {
      return await startWithin(sandbox.agent, spec, deadline)
    } catch (error) {
      if (!(error instanceof StartFailed)) throw error
      const fault = callersFault(error, spec)
      if (fault) throw fault
      return error
    }
  }
  const words = plainWordsOf(command, env)
  // If the program could not be started without a shell, run the command through a shell, which prints the reason.
  const alone = words && (await startBy({ argv: words }))
  if (alone && !(alone instanceof StartFailed)) return alone
  for (const shell of shells) {
    const started = await startBy(throughShell(shell, command))
    if (!(started instanceof StartFailed)) return started
    if (started.errno !== 'ENOENT') return `The shell could not be started: ${started.errno}\n`
  }
  return 'This sandbox has neither bash nor sh.\n'
}

export const executeGiven = async (
  sandbox: ToolboxSandbox,
  given: Given<ExecuteRequest>,
  deadline: Deadline,
): Promise<ExecuteResponse> => {
  using output = new BoundedOutput(sandbox.assignment.organizationId)
  const findOutOfMemory = watchMemory(sandbox)
  const started = await start(sandbox, given, deadline)
  if (typeof started === 'string') return { exitCode: -1, result: started }
  started.inputGone.then(given.letGo)
  const { exitCode } = await withOutputSoFar(
    followToEnd(started, deadline, (data) => output.add(data)),
    output,
  )
  const shortage = await findOutOfMemory(exitCode)
  if (shortage === undefined) return { exitCode, result: output.text() }
  // The output of a successful command gets no line about killed processes, because the caller may parse the output.
  const line = exitCode === 0 ? '' : shortage.line
  return { exitCode, result: `${output.text()}${line}`, oom: shortage.oom }
}

/** Executes a command. Keeps no reference to the request body, so that its memory can be freed while the command runs. */
export const execute = (sandbox: ToolboxSandbox, body: ExecuteRequest, deadline: Deadline): Promise<ExecuteResponse> =>
  executeGiven(sandbox, { body }, deadline)
