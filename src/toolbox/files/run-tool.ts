// Runs one of the image's own tools, never through a shell. The tool ends by itself, at the deadline, or when `take` has enough
// output.

import type { Deadline } from '#src/toolbox/running/deadline.ts'
import { runToEnd } from '#src/toolbox/running/run.ts'
import { environmentOf } from '../agent/environment.ts'
import { pathFrom } from '../agent/work-directory.ts'
import type { ToolboxSandbox } from '../sandbox.ts'

type Tool = {
  argv: readonly string[]
  /** Working directory of the tool. A relative path starts at the sandbox's work directory. */
  cwd?: string
  /** Receives the standard output piece by piece. If this function returns `false`, the tool is ended. */
  take?: (data: Buffer) => boolean
  /** Receives the standard error piece by piece. */
  complain?: (data: Buffer) => void
}

/**
 * Runs a tool and returns its exit code. Ends the tool and returns undefined if the caller's function `take` returns false. Throws
 * the errors of `runToEnd`.
 */
export const runTool = async (
  sandbox: ToolboxSandbox,
  deadline: Deadline,
  { argv, cwd, take, complain }: Tool,
): Promise<number | undefined> => {
  const enough = new AbortController()
  const spec = {
    argv,
    // Makes the tool treat text as bytes: the image's locale must not decide what a character is.
    env: environmentOf(sandbox, { LC_ALL: 'C' }),
    ...(cwd === undefined ? {} : { cwd: pathFrom(sandbox.workDirectory, cwd) }),
    user: sandbox.assignment.user,
    mergeOutput: false,
  }
  const until = { signal: AbortSignal.any([deadline.signal, enough.signal]), [Symbol.dispose]: () => {} }
  try {
    const { exitCode } = await runToEnd(sandbox.agent, spec, until, (data, stream) => {
      if (stream === 'stderr') complain?.(data)
      else if (!enough.signal.aborted && take?.(data) === false) enough.abort()
    })
    return enough.signal.aborted ? undefined : exitCode
  } catch (error) {
    if (enough.signal.aborted) return undefined
    throw error
  }
}

/** Changes a path so that no tool mistakes it for an option. */
export const operand = (path: string): string => (path.startsWith('-') ? `./${path}` : path)
