// `process/execute`: one shell command, its whole output in arrival order, and its exit code (contract/toolbox.md §2).
import { Problem } from '#src/problems.ts'
import { type CommandSpec, StartFailed } from '../agent/agent.ts'
import { environmentOf, type ToolboxSandbox } from '../sandbox.ts'
import type { Deadline } from './deadline.ts'
import { checkEnvironment } from './environment.ts'
import { BoundedOutput } from './output.ts'
import { plainWordsOf } from './plain.ts'
import { runToEnd } from './run.ts'
import type { ExecuteRequest, ExecuteResponse } from './schemas.ts'
import { callersFault } from './start-failure.ts'

export const defaultTimeoutSeconds = 10

const shells = ['bash', 'sh'] as const

/** The kernel takes 128 KiB for one argument; a longer command goes in through standard input, which then is at its end. */
const argumentBytes = 100 * 1024
const evalStdin = 'eval "$(cat)"'

type Way = Pick<CommandSpec, 'argv' | 'stdin'>

const throughShell = (shell: string, command: string): Way => {
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
  using output = new BoundedOutput(sandbox.assignment.organizationId)
  const env = environmentOf(sandbox, envs ?? {})
  const start = async (way: Way): Promise<ExecuteResponse | StartFailed> => {
    const { user } = sandbox.assignment
    const spec: CommandSpec = { ...way, env, ...(cwd ? { cwd } : {}), user, mergeOutput: true }
    try {
      const { exitCode } = await runToEnd(sandbox.agent, spec, deadline, (data) => output.add(data))
      return { exitCode, result: output.text() }
    } catch (error) {
      if (!(error instanceof StartFailed)) throw error
      const fault = callersFault(error, spec)
      if (fault) throw fault
      return error
    }
  }
  const words = plainWordsOf(command, env)
  // What is wrong with a program that does not start, the shell says.
  const alone = words && (await start({ argv: words }))
  if (alone && !(alone instanceof StartFailed)) return alone
  for (const shell of shells) {
    const ended = await start(throughShell(shell, command))
    if (!(ended instanceof StartFailed)) return ended
    if (ended.errno !== 'ENOENT') return { exitCode: -1, result: `The shell could not be started: ${ended.errno}\n` }
  }
  return { exitCode: -1, result: 'This sandbox has neither bash nor sh.\n' }
}
