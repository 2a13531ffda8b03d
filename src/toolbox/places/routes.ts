// Endpoints for the directories of the sandbox, and for the version of its toolbox.
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { version } from '#src/kit/version.ts'
import { Problem } from '#src/problems.ts'
import { deadlineOf } from '#src/toolbox/running/deadline.ts'
import { BoundedOutput } from '#src/toolbox/running/output.ts'
import { runToEnd } from '#src/toolbox/running/run.ts'
import { callersFault } from '#src/toolbox/running/start-failure.ts'
import { StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { route, type ToolboxSandbox } from '../sandbox.ts'

const Directory = Type.Object({ dir: Type.String() })

/** Maximum size of the output of a script of `askInside`, in bytes. A script prints a path, which is far shorter. */
const pathBytes = 64 * 1024
const timeoutSeconds = 10

/** Runs a script in the sandbox's shell, because the user's home and its full path are known only inside the sandbox. */
const askInside = async (sandbox: ToolboxSandbox, reply: FastifyReply, script: string) => {
  using deadline = deadlineOf(reply, { seconds: timeoutSeconds })
  using output = new BoundedOutput(sandbox.assignment.organizationId, pathBytes)
  const spec = {
    argv: ['sh', '-c', script],
    env: environmentOf(sandbox),
    user: sandbox.assignment.user,
    mergeOutput: true,
  }
  const { exitCode } = await runToEnd(sandbox.agent, spec, deadline, (data) => output.add(data)).catch((error) => {
    if (!(error instanceof StartFailed)) throw error
    throw (
      callersFault(error, spec) ??
      new Problem('unprocessable', 'This sandbox has no shell, which is needed to find the directory.')
    )
  })
  if (exitCode !== 0) throw new Problem('unprocessable', 'The shell in this sandbox could not find the directory.')
  if (output.droppedBytes > 0) throw new Problem('unprocessable', 'The path of the directory is too long.')
  return { dir: output.text() }
}

export const placesRoutes = [
  route({
    method: 'GET',
    path: '/user-home-dir',
    needs: 'sandbox',
    summary: "Returns the home directory of the sandbox's user.",
    replies: { 200: Directory },
    run: ({ sandbox, reply }) => askInside(sandbox, reply, 'printf %s "$HOME"'),
  }),
  route({
    method: 'GET',
    path: '/work-dir',
    needs: 'sandbox',
    summary: 'Returns the directory in which commands start by default.',
    replies: { 200: Directory },
    run: ({ sandbox, reply }) => askInside(sandbox, reply, 'printf %s "$(pwd)"'),
  }),
  route({
    method: 'GET',
    path: '/version',
    needs: 'sandbox',
    summary: 'Returns the version of the toolbox.',
    replies: { 200: Type.Object({ version: Type.String() }) },
    run: () => ({ version }),
  }),
]
