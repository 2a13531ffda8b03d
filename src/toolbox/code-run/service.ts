// `process/code-run`: a program in one of three languages, in a fresh process (contract/toolbox.md §3).
import { Problem } from '#src/problems.ts'
import { type CommandSpec, StartFailed } from '../agent/agent.ts'
import type { Deadline } from '../exec/deadline.ts'
import { checkEnvironment } from '../exec/environment.ts'
import { BoundedOutput } from '../exec/output.ts'
import { runToEnd } from '../exec/run.ts'
import { callersFault } from '../exec/start-failure.ts'
import { environmentOf, type ToolboxSandbox } from '../sandbox.ts'
import { ArtifactSieve } from './artifacts.ts'
import { javascriptProgram, pythonProgram, typescriptProgram } from './programs.ts'
import { type CodeRunRequest, type CodeRunResponse, type Language, languages } from './schemas.ts'
import { transpile } from './typescript.ts'

/** Throws a 400 for what can be seen before anything is started. */
export const checkCode = ({ code, envs }: CodeRunRequest): void => {
  if (code.trim() === '') throw new Problem('bad_request', 'body.code must not be empty')
  checkEnvironment(envs ?? {})
}

const languageOf = (sandbox: ToolboxSandbox, given: Language | null | undefined): Language =>
  given ?? languages.find((language) => language === sandbox.assignment.language) ?? 'python'

const interpreters: Record<Language, readonly string[]> = {
  python: ['python3', '-u', '-'],
  javascript: ['node', '-'],
  typescript: ['node', '-'],
}

export const runCode = async (
  sandbox: ToolboxSandbox,
  { code, language: given, argv, envs }: CodeRunRequest,
  deadline: Deadline,
): Promise<CodeRunResponse> => {
  const language = languageOf(sandbox, given)
  let program: string
  if (language === 'typescript') {
    const transpiled = await transpile(code, deadline)
    if ('complaint' in transpiled) return { exitCode: 1, result: transpiled.complaint }
    program = typescriptProgram(transpiled.javascript)
  } else program = language === 'python' ? pythonProgram(code) : javascriptProgram(code)

  const spec: CommandSpec = {
    argv: [...interpreters[language], ...(argv ?? [])],
    env: environmentOf(sandbox, envs ?? {}),
    user: sandbox.assignment.user,
    stdin: Buffer.from(program),
    mergeOutput: true,
  }
  using output = new BoundedOutput(sandbox.assignment.organizationId)
  using sieve = new ArtifactSieve(output)
  try {
    const { exitCode } = await runToEnd(sandbox.agent, spec, deadline, (data) => sieve.take(data))
    sieve.end()
    const result = output.text()
    return sieve.charts.length === 0 ? { exitCode, result } : { exitCode, result, artifacts: { charts: sieve.charts } }
  } catch (error) {
    if (!(error instanceof StartFailed)) throw error
    const fault = callersFault(error, spec)
    if (fault) throw fault
    return { exitCode: -1, result: `${spec.argv[0]} could not be started in this sandbox: ${error.errno}\n` }
  }
}
