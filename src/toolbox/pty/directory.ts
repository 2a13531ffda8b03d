// Which directory a terminal or an interpreter starts in, as an absolute path to tell.

import { deadlineOf } from '#src/toolbox/running/deadline.ts'
import { runToEnd } from '#src/toolbox/running/run.ts'
import { type Output, StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { asNotStarted, asTold } from '../refusals.ts'
import type { ToolboxSandbox } from '../sandbox.ts'

const pathBytes = 1024
const timeoutSeconds = 10

/** Only inside are the home and the way from there known. Throws the refusal for a directory that cannot be entered. */
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
    // Whoever has no `sh` may still have what is to be started.
    if (error instanceof StartFailed && error.stage === 'exec') return cwd
    throw error instanceof StartFailed ? asNotStarted(error, cwd, user, '') : asTold(error)
  }
}
