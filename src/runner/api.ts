// Serves the toolbox of every started sandbox, and its ports, on one unix socket; and takes the files of definitions. Only the proxy may connect to it, and the proxy has
// checked who calls.
import { once } from 'node:events'
import { chmod, chown, rm } from 'node:fs/promises'
import { posix } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { createServer } from '#src/http/server.ts'
import type { Logger } from '#src/kit/log.ts'
import { noSandbox, notStarted } from '#src/problems.ts'
import { agentAt } from '#src/toolbox/agent/agent.ts'
import { agentIn } from '#src/toolbox/agent/work-directory.ts'
import { toolboxEndpoints } from '#src/toolbox/endpoints.ts'
import type { ToolboxContext, ToolboxNeeds, ToolboxSandbox } from '#src/toolbox/sandbox.ts'
import type { ImageConfig } from '#src/wire/runner-link.ts'
import { defaultExecuteTimeoutSeconds } from './config.ts'
import { serveContexts } from './contexts/routes.ts'
import type { ContextStore } from './contexts/store.ts'
import { serveDials } from './dial.ts'
import type { HeldSandbox, Host } from './host.ts'
import { untilTaken } from './until-taken.ts'

type ToolboxParts = {
  /** Without `measure` nothing is measured, without `imageOf` nothing is known of images. */
  host: Pick<Host, 'get'> & Partial<Pick<Host, 'measure' | 'imageOf' | 'outOfMemoryKills' | 'wasKilledBetween'>>
  /** What an image that was brought says of its sandboxes. */
  configOf?: (image: string) => ImageConfig | undefined
  /** The files that come with definitions, if they can come here. */
  contexts?: ContextStore
  /** Default limit of `process/execute`, in seconds (config.ts). */
  executeTimeoutSeconds?: number
  log: Logger
}

/** The server, not listening yet. */
export const createToolboxServer = async ({
  host,
  configOf = () => undefined,
  contexts,
  executeTimeoutSeconds = defaultExecuteTimeoutSeconds,
  log,
}: ToolboxParts): Promise<FastifyInstance> => {
  const server = await createServer<ToolboxContext, ToolboxNeeds>({
    routes: toolboxEndpoints,
    prefixes: ['/toolbox/:sandboxId'],
    source: 'DAYTONA_DAEMON',
    log,
    ownerOf: ({ sandbox }) => sandbox.assignment.organizationId,
    tell: ({ sandboxId }) => ({ 'alcove.sandbox': sandboxId }),
    guard: async ({ params, headers }, { needs }) => {
      const { sandboxId } = params as { sandboxId: string }
      await untilTaken(host, sandboxId, headers)
      const held = host.get(sandboxId)
      if (!held) throw noSandbox(sandboxId)
      // At once: whoever asks a sandbox that is frozen would wait until someone resumes it.
      const mayBePaused = needs === 'sandbox, also paused'
      if (held.status === 'paused' && !mayBePaused) throw notStarted('The sandbox is paused.')
      if (held.status !== 'started' && held.status !== 'paused') throw notStarted('The sandbox is not started.')
      const image = await host.imageOf?.(held.id)
      return {
        sandbox: {
          ...sandboxOf(held, image === undefined ? undefined : configOf(image)),
          memoryKills: {
            count: () => host.outOfMemoryKills?.(held.id) ?? 0,
            between: (from, until) => host.wasKilledBetween?.(held.id, from, until) ?? false,
          },
        },
        measure: async () => await host.measure?.(held.id),
        executeTimeoutSeconds,
      }
    },
  })
  serveDials(server, { get: (sandboxId) => host.get(sandboxId), agentAt })
  if (contexts) serveContexts(server, contexts)
  server.get('/healthz', () => ({ status: 'ok' }))
  return server
}

const sandboxOf = ({ id, assignment, socketPath }: HeldSandbox, config: ImageConfig | undefined): ToolboxSandbox => {
  const agent = agentAt(socketPath)
  if (config === undefined) return { id, assignment, agent }
  // What a sandbox has of its own comes before what its image says.
  const known = { id, assignment: { ...assignment, env: { ...config.env, ...assignment.env } } }
  const directory = posix.resolve('/', config.workdir)
  // An image that names none says so: then it is the home, and not the root of all files.
  return directory === '/'
    ? { ...known, agent }
    : { ...known, agent: agentIn(agent, directory), workDirectory: directory }
}

/** Listens where a former runner may have left its socket; only root and the group can connect. */
export const listenOn = async (server: FastifyInstance, path: string, gid: number): Promise<void> => {
  await rm(path, { force: true })
  await server.ready()
  const before = process.umask(0o177)
  try {
    server.server.listen(path)
    await once(server.server, 'listening')
  } finally {
    process.umask(before)
  }
  await chown(path, process.getuid?.() ?? 0, gid)
  await chmod(path, 0o660)
}
