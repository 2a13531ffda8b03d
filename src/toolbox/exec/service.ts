// `process/execute`: one shell command, its whole output in arrival order, and its exit code (contract/toolbox.md §2).
import { Problem } from '#src/problems.ts'
import { type CommandSpec, StartFailed } from '../agent/agent.ts'
import { environmentOf, type ToolboxSandbox } from '../sandbox.ts'
import type { Deadline } from './deadline.ts'
import { checkEnvironment } from './environment.ts'
import { BoundedOutput } from './output.ts'
import { runToEnd } from './run.ts'
import type { ExecuteRequest, ExecuteResponse } from './schemas.ts'
import { callersFault } from './start-failure.ts'

export const defaultTimeoutSeconds = 10

const shells = ['bash', 'sh'] as const

/** The kernel takes 128 KiB for one argument; a longer command goes in through standard input, which then is at its end. */
const argumentBytes = 100 * 1024
const evalStdin = 'eval "$(cat)"'

const specFor = (shell: string, command: string): Pick<CommandSpec, 'argv' | 'stdin'> => {
  if (Buffer.byteLength(command) <= argumentBytes) return { argv: [shell, '-c', command] }
  return { argv: [shell, '-c', evalStdin], stdin: Buffer.from(command) }
}

/** Throws a 400 for what can be seen before anything is started. */
export const checkCommand = ({ command, envs }: ExecuteRequest): void => {
  if (command.trim() === '') throw new Problem('bad_request', 'body.command must not be blank')
  checkEnvironment(envs ?? {})
}

export const execute = async (
  sandbox: ToolboxSandbox,
  { command, cwd, envs }: ExecuteRequest,
  deadline: Deadline,
): Promise<ExecuteResponse> => {
  using output = new BoundedOutput()
  for (const shell of shells) {
    const spec: CommandSpec = {
      ...specFor(shell, command),
      env: environmentOf(sandbox, envs ?? {}),
      ...(cwd ? { cwd } : {}),
      user: sandbox.assignment.user,
      mergeOutput: true,
    }
    try {
      const { exitCode } = await runToEnd(sandbox.agent, spec, deadline, (data) => output.add(data))
      return { exitCode, result: output.text() }
    } catch (error) {
      if (!(error instanceof StartFailed)) throw error
      const fault = callersFault(error, spec)
      if (fault) throw fault
      if (error.errno !== 'ENOENT') return { exitCode: -1, result: `The shell could not be started: ${error.errno}\n` }
    }
  }
  return { exitCode: -1, result: 'This sandbox has neither bash nor sh.\n' }
}
