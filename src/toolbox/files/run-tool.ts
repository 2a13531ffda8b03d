// Runs one of the image's own tools, with arguments and never through a shell, until it ends, the deadline comes, or
// enough has been heard.

import type { Deadline } from '#src/toolbox/running/deadline.ts'
import { runToEnd } from '#src/toolbox/running/run.ts'
import { environmentOf } from '../agent/environment.ts'
import { pathFrom } from '../agent/work-directory.ts'
import type { ToolboxSandbox } from '../sandbox.ts'

type Tool = {
  argv: readonly string[]
  /** Working directory; a relative path begins at the work directory. */
  cwd?: string
  /** Sees the standard output piece by piece; `false` means that this is enough. */
  take?: (data: Buffer) => boolean
  /** Sees the standard error piece by piece. */
  complain?: (data: Buffer) => void
}

/** Runs a tool and answers its exit code; `undefined` when enough had been heard. Throws what `runToEnd` throws. */
export const runTool = async (
  sandbox: ToolboxSandbox,
  deadline: Deadline,
  { argv, cwd, take, complain }: Tool,
): Promise<number | undefined> => {
  const enough = new AbortController()
  const spec = {
    argv,
    // Bytes are bytes: no locale of the image decides what is a character.
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

/** An operand that no tool takes for an option. */
export const operand = (path: string): string => (path.startsWith('-') ? `./${path}` : path)
