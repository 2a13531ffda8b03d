// The toolbox of all sandboxes of this host. It does not listen on a port: the gate passes it the calls that control has allowed.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { posix } from 'node:path'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { createServer, leaveRefusal } from '#src/http/server.ts'
import type { Logger } from '#src/kit/log.ts'
import { noSandbox, notStarted } from '#src/problems.ts'
import type { VariableChange } from '#src/wire/access.ts'
import type { MemoryKillsHere, SandboxHere } from '#src/wire/gate-link.ts'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import { agentAt } from './agent/agent.ts'
import { agentIn } from './agent/work-directory.ts'
import type { Compiler } from './compiler.ts'
import { toolboxEndpoints } from './endpoints.ts'
import type { ToolboxContext, ToolboxNeeds, ToolboxSandbox } from './sandbox.ts'
import unserved from './unserved.json' with { type: 'json' }

/** The sandbox that a call is for. The functions `measure`, `memoryKills` and `changeVariables` ask the sandbox's runner. */
export type Called = {
  sandbox: SandboxHere
  measure: () => Promise<MeterReading | undefined>
  memoryKills?: () => Promise<MemoryKillsHere>
  compiler: Compiler
  changeVariables: (change: VariableChange) => Promise<void>
}

type ToolboxParts = {
  /** Returns the sandbox of a call, or undefined if it is not on this host. Throws if the gate has not allowed the call. */
  calledBy: (request: IncomingMessage, sandboxId: string) => Promise<Called | undefined> | Called | undefined
  /** Default timeout of `process/execute`, in seconds. 0: no timeout. */
  executeTimeoutSeconds: number
  log: Logger
}

/** Creates the server without listening. */
export const createToolboxServer = ({ calledBy, executeTimeoutSeconds, log }: ToolboxParts): Promise<FastifyInstance> =>
  createServer<ToolboxContext, ToolboxNeeds>({
    routes: toolboxEndpoints,
    prefixes: ['/toolbox/:sandboxId'],
    unserved,
    source: 'DAYTONA_DAEMON',
    log,
    ownerOf: ({ sandbox }) => sandbox.assignment.organizationId,
    tell: ({ sandboxId }) => ({ 'alcove.sandbox': sandboxId }),
    guard: async ({ params, raw }, { needs }) => {
      const { sandboxId } = params as { sandboxId: string }
      const called = await calledBy(raw, sandboxId)
      if (called === undefined) throw noSandbox(sandboxId)
      const { sandbox, measure, memoryKills, compiler, changeVariables } = called
      // Refuse the call immediately if the sandbox is paused. Otherwise the call would wait until somebody resumes the
      // sandbox.
      const mayBePaused = needs === 'sandbox, also paused'
      if (sandbox.status === 'paused' && !mayBePaused) throw notStarted('The sandbox is paused.')
      if (sandbox.status !== 'started' && sandbox.status !== 'paused') throw notStarted('The sandbox is not started.')
      return {
        sandbox: { ...sandboxOf(sandbox), ...(memoryKills && { memoryKills }) },
        measure,
        compiler,
        changeVariables,
        executeTimeoutSeconds,
      }
    },
  })

const sandboxOf = ({ id, assignment, socketPath, config }: SandboxHere): ToolboxSandbox => {
  const agent = agentAt(socketPath)
  if (config === undefined) return { id, assignment, agent }
  // Variables of the sandbox override those of the image.
  const known = { id, assignment: { ...assignment, env: { ...config.env, ...assignment.env } } }
  const directory = posix.resolve('/', config.workdir)
  // An image without a working directory reports `/`. Commands then start in the user's home, not in `/`.
  return directory === '/'
    ? { ...known, agent }
    : { ...known, agent: agentIn(agent, directory), workDirectory: directory }
}

/** Serves the toolbox inside this process, without a port. */
export class Toolbox {
  readonly #server: FastifyInstance
  readonly #answered = new WeakMap<IncomingMessage, (status: number) => void>()

  private constructor(server: FastifyInstance) {
    this.#server = server
  }

  static async open(parts: ToolboxParts): Promise<Toolbox> {
    const server = await createToolboxServer(parts)
    const toolbox = new Toolbox(server)
    server.addHook('onResponse', ({ raw }, { statusCode }, done) => {
      toolbox.#settle(raw, statusCode)
      done()
    })
    server.websocketServer.on('connection', (_socket, request: IncomingMessage) => toolbox.#settle(request, 101))
    await server.ready()
    return toolbox
  }

  #settle(request: IncomingMessage, status: number): void {
    this.#answered.get(request)?.(status)
    this.#answered.delete(request)
  }

  call(request: IncomingMessage, response: ServerResponse): void {
    this.#server.routing(request, response)
  }

  /**
   * Handles an upgrade. Returns the status of the answer, which is 101 for a WebSocket. Throws a Problem if the call is refused.
   */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#answered.set(request, resolve)
      leaveRefusal(request, reject)
      socket.once('close', () => resolve(499))
      this.#server.server.emit('upgrade', request, socket, head)
    })
  }

  /** Closes the server and its open WebSockets. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.close()
  }
}
