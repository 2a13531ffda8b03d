// Finds the absolute path of the directory in which a terminal or an interpreter starts. Answers of the API contain
// this path.

import { deadlineOf } from '#src/toolbox/running/deadline.ts'
import { runToEnd } from '#src/toolbox/running/run.ts'
import { type Output, StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { asNotStarted, asTold } from '../refusals.ts'
import type { ToolboxSandbox } from '../sandbox.ts'

const pathBytes = 1024
const timeoutSeconds = 10

/**
 * Returns the absolute path of `cwd`. Only a command in the sandbox can find the home and resolve relative paths. Throws a refusal
 * for a directory that cannot be entered.
 */
export const findDirectory = async (sandbox: ToolboxSandbox, cwd: string): Promise<string> => {
  if (cwd.startsWith('/')) return cwd
  const { user } = sandbox.assignment
  const spec = { argv: ['sh', '-c', 'pwd'], env: environmentOf(sandbox), user, mergeOutput: false }
  using deadline = deadlineOf(undefined, { seconds: timeoutSeconds })
  let path = ''
  const take = (data: Buffer, stream: Output['stream']) => {
    if (stream === 'stdout' && path.length <= pathBytes) path += data.toString()
  }
  try {
    await runToEnd(sandbox.agent, cwd === '' ? spec : { ...spec, cwd }, deadline, take)
    const found = path.replace(/\n$/, '')
    return found.startsWith('/') && found.length <= pathBytes ? found : cwd
  } catch (error) {
    // The image has no `sh`. The terminal's program may exist all the same, so let it start in `cwd`.
    if (error instanceof StartFailed && error.stage === 'exec') return cwd
    throw error instanceof StartFailed ? asNotStarted(error, cwd, user, '') : asTold(error)
  }
}
