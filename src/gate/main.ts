// Starts the gate: assembles its parts and listens.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { backlog } from '#src/http/connections.ts'
import { CertificateFiles } from '#src/kit/certificate-files.ts'
import { credentialFor } from '#src/kit/credential.ts'
import { LastingSocket } from '#src/kit/lasting-socket.ts'
import type { Logger } from '#src/kit/log.ts'
import type { Agent } from '#src/toolbox/agent/agent.ts'
import { openAhead } from '#src/toolbox/agent/connection.ts'
import { Toolbox } from '#src/toolbox/server.ts'
import { controlHostName } from '#src/wire/hosts.ts'
import { AccessDesk } from './access.ts'
import type { GateConfig } from './config.ts'
import { createDoor } from './door.ts'
import { createFront, type FrontBounds, type FrontParts } from './front.ts'
import { Inside } from './inside.ts'
import { type ListenerBounds, listenForPeers } from './peers/listener.ts'
import type { PeerBounds } from './peers/peer.ts'
import { Peers } from './peers/peers.ts'
import { Sandboxes } from './sandboxes.ts'
import { TicketChecks } from './tickets.ts'
import { calledBy } from './toolbox-calls.ts'

/** When the gate stops, running calls have this many milliseconds to end. The gate stops within 3 s in total. */
const graceMs = 2000

type Gate = {
  port: number
  /** The port on which gates of other hosts are served. */
  peersPort?: number | undefined
  close: () => Promise<void>
}

/** Simulated parts that a test passes in place of the gate's own parts. */
type Stands = {
  sandboxes?: Pick<Sandboxes, 'find' | 'linkTo'>
  toolbox?: FrontParts['toolbox']
  agentAt?: (socketPath: string) => Pick<Agent, 'dial'>
}

export type GateBounds = FrontBounds & { peers?: PeerBounds; listener?: ListenerBounds }

export const startGate = async (
  {
    listen,
    controlUrl,
    proxyKey: key,
    certificatesDirectory,
    publicUrl,
    runnerSocket,
    gateId,
    peersListen,
    executeTimeoutSeconds,
  }: Omit<GateConfig, 'telemetry'>,
  log: Logger,
  { peers: peerBounds, listener: listenerBounds, ...bounds }: GateBounds = {},
  stands: Stands = {},
): Promise<Gate> => {
  const credential = credentialFor(controlUrl, { key, certificatesDirectory, controlName: controlHostName })
  const access = new AccessDesk({ controlUrl, credential })
  const tickets = new TicketChecks({ listKeys: () => access.listTicketKeys(), log })
  const link = new LastingSocket({
    url: new URL('/api/proxy/link', controlUrl),
    credential,
    name: 'control',
    log,
    // Fetches the ticket keys before the first call. If the fetch fails, the first call fetches the keys.
    onOpen: () => void tickets.renewKeys().catch(() => {}),
    onText: (text) => {
      const heard = access.hear(text)
      if (heard !== undefined) tickets.readAhead(heard.ticket)
    },
  })
  const sandboxes = new Sandboxes(log)
  if (runnerSocket !== undefined) sandboxes.linkTo(`unix:${runnerSocket}`)
  const door = createDoor(stands.sandboxes ?? sandboxes, tickets, gateId)
  const certificates = certificatesDirectory === undefined ? undefined : new CertificateFiles(certificatesDirectory)
  const peers = new Peers({ id: gateId, certificates, log, ...(peerBounds && { bounds: peerBounds }) })
  const ahead = openAhead()
  const toolbox = await Toolbox.open({ calledBy: calledBy(door, access), executeTimeoutSeconds, log })
  const { server, hangUp } = createFront({
    access,
    inside: new Inside(door, stands.agentAt, (entering, port) => peers.dial(entering, port)),
    sandboxes: stands.sandboxes ?? sandboxes,
    toolbox: stands.toolbox ?? toolbox,
    peers,
    runnerSocket,
    gateId,
    log,
    ownHost: publicUrl.host,
    ...bounds,
  })
  const peerListener =
    peersListen === undefined || certificates === undefined
      ? undefined
      : await listenForPeers({
          ...{ listen: peersListen, certificates, inside: new Inside(door, stands.agentAt) },
          ...{ toolbox: stands.toolbox ?? toolbox, log, ...listenerBounds },
        })
  server.listen({ ...listen, backlog })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  log.info({ host: listen.host, port }, 'serving')
  return {
    port,
    peersPort: peerListener?.port,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeIdleConnections()
      const timer = setTimeout(hangUp, graceMs)
      await closed
      clearTimeout(timer)
      hangUp()
      await peerListener?.close()
      peers[Symbol.dispose]()
      link[Symbol.dispose]()
      await toolbox[Symbol.asyncDispose]()
      sandboxes[Symbol.dispose]()
      ahead[Symbol.dispose]()
      await access[Symbol.asyncDispose]()
    },
  }
}
