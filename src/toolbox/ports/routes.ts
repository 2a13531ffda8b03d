// Endpoints for the ports inside a sandbox on which a server listens.
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { PathText } from '#src/http/shapes.ts'
import { notStarted, Problem } from '#src/problems.ts'
import { beforeDeadline, deadlineOf } from '#src/toolbox/running/deadline.ts'
import { BoundedOutput } from '#src/toolbox/running/output.ts'
import { runToEnd } from '#src/toolbox/running/run.ts'
import { callersFault } from '#src/toolbox/running/start-failure.ts'
import { AgentRefused, StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { route, type ToolboxSandbox } from '../sandbox.ts'
import { listeningPorts } from './listening.ts'

const timeoutSeconds = 10
/** Maximum size in bytes of the tables of TCP sockets, with 150 bytes per socket. Longer tables are refused. */
const tableBytes = 8 * 1024 * 1024

const listPorts = async (sandbox: ToolboxSandbox, reply: FastifyReply) => {
  using deadline = deadlineOf(reply, { seconds: timeoutSeconds })
  using output = new BoundedOutput(sandbox.assignment.organizationId, tableBytes)
  const spec = {
    argv: ['cat', '/proc/net/tcp', '/proc/net/tcp6'],
    env: environmentOf(sandbox),
    user: sandbox.assignment.user,
    mergeOutput: true,
  }
  // Without IPv6, `cat` prints an error in place of the table `tcp6`. `listeningPorts` ignores this error.
  await runToEnd(sandbox.agent, spec, deadline, (data) => output.add(data)).catch((error) => {
    if (!(error instanceof StartFailed)) throw error
    throw (
      callersFault(error, spec) ??
      new Problem('unprocessable', 'This sandbox has no program cat, which is needed to find the ports.')
    )
  })
  if (output.droppedBytes > 0)
    throw new Problem('unavailable', 'The output was cut off, because too much output is stored now. Try again.')
  return { ports: listeningPorts(output.text()) }
}

const isInUse = async ({ agent }: ToolboxSandbox, reply: FastifyReply, port: number) => {
  using deadline = deadlineOf(reply, { seconds: timeoutSeconds })
  const dialling = agent.dial(port)
  try {
    const connection = await beforeDeadline(dialling, deadline)
    connection.destroy()
    return { isInUse: true }
  } catch (error) {
    dialling.then(
      (late) => late.destroy(),
      () => undefined,
    )
    if (error instanceof AgentRefused && error.stage === 'connect') return { isInUse: false }
    if (error instanceof Problem) throw error
    throw notStarted('The sandbox was stopped or deleted before it had answered.', { cause: error })
  }
}

const portOf = (text: string): number => {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw new Problem('bad_request', 'params.port must be a port from 1 to 65535')
  return port
}

export const portRoutes = [
  route({
    method: 'GET',
    path: '/port',
    needs: 'sandbox',
    summary: 'Lists the TCP ports on which programs in the sandbox listen.',
    replies: { 200: Type.Object({ ports: Type.Array(Type.Integer()) }) },
    run: ({ sandbox, reply }) => listPorts(sandbox, reply),
  }),
  route({
    method: 'GET',
    path: '/port/:port/in-use',
    needs: 'sandbox',
    summary: 'Returns whether a program in the sandbox accepts connections on a TCP port.',
    params: Type.Object({ port: PathText }),
    replies: { 200: Type.Object({ isInUse: Type.Boolean() }) },
    run: ({ sandbox, params, reply }) => isInUse(sandbox, reply, portOf(params.port)),
  }),
]
