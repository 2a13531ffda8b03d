// `process/code-run`: runs a program in one of three languages, in a new process.

import { Problem } from '#src/problems.ts'
import type { Deadline } from '#src/toolbox/running/deadline.ts'
import { checkEnvironment } from '#src/toolbox/running/environment.ts'
import { watchMemory } from '#src/toolbox/running/out-of-memory.ts'
import { BoundedOutput } from '#src/toolbox/running/output.ts'
import { followToEnd, startWithin, withOutputSoFar } from '#src/toolbox/running/run.ts'
import { callersFault } from '#src/toolbox/running/start-failure.ts'
import { type CommandSpec, type RunningCommand, StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import type { Compiler } from '../compiler.ts'
import type { Given } from '../held-bodies.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { ArtifactSieve } from './artifacts.ts'
import {
  importsFiles,
  javascriptProgram,
  type Program,
  pythonProgram,
  typescriptFunction,
  typescriptModule,
  typescriptProgram,
} from './programs.ts'
import { type CodeRunRequest, type CodeRunResponse, type Language, languages } from './schemas.ts'
import { transpile } from './typescript.ts'

/** Throws a 400 for errors that can be found before a process is started. */
export const checkCode = ({ code, envs }: CodeRunRequest): void => {
  if (code.trim() === '') throw new Problem('bad_request', 'body.code must not be empty')
  checkEnvironment(envs ?? {})
}

const languageOf = (sandbox: ToolboxSandbox, given: Language | null | undefined): Language =>
  given ?? languages.find((language) => language === sandbox.assignment.language) ?? 'python'

const programOf = async (
  { assignment }: ToolboxSandbox,
  language: Language,
  code: string,
  deadline: Deadline,
  compiler: Compiler,
): Promise<Program | { complaint: string }> => {
  if (language === 'python') return pythonProgram(code)
  if (language === 'javascript') return javascriptProgram(code)
  const withFiles = importsFiles(code)
  const transpiled = await transpile(compiler, assignment.organizationId, code, deadline, withFiles)
  if ('complaint' in transpiled) return transpiled
  const { javascript, isModule } = transpiled
  if (!withFiles) return isModule ? typescriptModule(javascript) : typescriptProgram(javascript)
  return isModule
    ? typescriptFunction(javascript, await compiler.typeRemover())
    : typescriptProgram(javascript, await compiler.typeRemover())
}

/**
 * Starts the program, or returns the answer if that fails. Keeps no reference to the request body, so that its memory can be freed
 * while the program runs.
 */
const start = async (
  sandbox: ToolboxSandbox,
  { body }: Given<CodeRunRequest>,
  deadline: Deadline,
  compiler: Compiler,
): Promise<RunningCommand | CodeRunResponse> => {
  const { code, language: given, argv, envs } = body
  const language = languageOf(sandbox, given)
  const program = await programOf(sandbox, language, code, deadline, compiler)
  if ('complaint' in program) return { exitCode: 1, result: program.complaint }
  const spec: CommandSpec = {
    argv: [...program.argv, ...(argv ?? [])],
    env: environmentOf(sandbox, envs ?? {}),
    user: sandbox.assignment.user,
    stdin: Buffer.from(program.stdin),
    mergeOutput: true,
  }
  try {
    return await startWithin(sandbox.agent, spec, deadline)
  } catch (error) {
    if (!(error instanceof StartFailed)) throw error
    const fault = callersFault(error, spec)
    if (fault) throw fault
    return { exitCode: -1, result: `${spec.argv[0]} could not be started in this sandbox: ${error.errno}\n` }
  }
}

export const runCode = async (
  sandbox: ToolboxSandbox,
  given: Given<CodeRunRequest>,
  deadline: Deadline,
  compiler: Compiler,
): Promise<CodeRunResponse> => {
  const findOutOfMemory = watchMemory(sandbox)
  const started = await start(sandbox, given, deadline, compiler)
  if ('result' in started) return started
  started.inputGone.then(given.letGo)
  using output = new BoundedOutput(sandbox.assignment.organizationId)
  using sieve = new ArtifactSieve(output)
  const { exitCode } = await withOutputSoFar(
    followToEnd(started, deadline, (data) => sieve.take(data)),
    output,
  )
  sieve.end()
  const shortage = await findOutOfMemory(exitCode)
  return {
    exitCode,
    result: `${output.text()}${(exitCode !== 0 && shortage?.line) || ''}`,
    ...(sieve.charts.length === 0 ? {} : { artifacts: { charts: sieve.charts } }),
    ...(shortage === undefined ? {} : { oom: shortage.oom }),
  }
}
