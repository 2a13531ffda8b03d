// Starts the gate: assembles its parts and listens.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { backlog } from '#src/http/connections.ts'
import { credentialFor } from '#src/kit/credential.ts'
import { LastingSocket } from '#src/kit/lasting-socket.ts'
import type { Logger } from '#src/kit/log.ts'
import { openAhead } from '#src/toolbox/agent/connection.ts'
import { Toolbox } from '#src/toolbox/server.ts'
import { controlHostName } from '#src/wire/hosts.ts'
import { AccessDesk } from './access.ts'
import type { GateConfig } from './config.ts'
import { createDoor } from './door.ts'
import { createFront, type FrontBounds, type FrontParts } from './front.ts'
import { Inside } from './inside.ts'
import { Sandboxes } from './sandboxes.ts'
import { TicketChecks } from './tickets.ts'
import { calledBy } from './toolbox-calls.ts'

/**
 * Milliseconds in which running calls can end before they are cut off. Short enough that the gate stops within 3 s, including
 * the steps after this time.
 */
const graceMs = 2000

type Gate = { port: number; close: () => Promise<void> }

export const startGate = async (
  {
    listen,
    controlUrl,
    proxyKey: key,
    certificatesDirectory,
    publicUrl,
    runnerSocket,
    executeTimeoutSeconds,
  }: Omit<GateConfig, 'telemetry'>,
  log: Logger,
  bounds: FrontBounds = {},
  /** Replacements for parts of the gate in tests. */
  stands: Partial<Pick<FrontParts, 'sandboxes' | 'inside' | 'toolbox'>> = {},
): Promise<Gate> => {
  const credential = credentialFor(controlUrl, { key, certificatesDirectory, controlName: controlHostName })
  const access = new AccessDesk({ controlUrl, credential })
  const tickets = new TicketChecks({ listKeys: () => access.listTicketKeys(), log })
  const link = new LastingSocket({
    url: new URL('/api/proxy/link', controlUrl),
    credential,
    name: 'control',
    log,
    // Fetches the ticket keys before the first call. If this fails, the first call fetches them.
    onOpen: () => void tickets.renewKeys().catch(() => {}),
    onText: (text) => {
      const heard = access.hear(text)
      if (heard !== undefined) tickets.readAhead(heard.ticket)
    },
  })
  const sandboxes = new Sandboxes(log)
  if (runnerSocket !== undefined) sandboxes.linkTo(`unix:${runnerSocket}`)
  const door = createDoor(sandboxes, tickets)
  const ahead = openAhead()
  const toolbox = await Toolbox.open({ calledBy: calledBy(door, access), executeTimeoutSeconds, log })
  const { server, hangUp } = createFront({
    access,
    sandboxes,
    inside: new Inside(door),
    toolbox,
    ...stands,
    log,
    ownHost: publicUrl.host,
    ...bounds,
  })
  server.listen({ ...listen, backlog })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  log.info({ host: listen.host, port }, 'serving')
  return {
    port,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeIdleConnections()
      const timer = setTimeout(hangUp, graceMs)
      await closed
      clearTimeout(timer)
      hangUp()
      link[Symbol.dispose]()
      await toolbox[Symbol.asyncDispose]()
      sandboxes[Symbol.dispose]()
      ahead[Symbol.dispose]()
      await access[Symbol.asyncDispose]()
    },
  }
}
