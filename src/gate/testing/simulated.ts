// Simulates what surrounds a real gate: control, a toolbox, and an agent with a server inside a sandbox.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { Inflow } from '#src/kit/inflow.ts'
import { silentLog } from '#src/kit/log.ts'
import type { Problem } from '#src/problems.ts'
import { AgentRefused } from '#src/toolbox/agent/agent.ts'
import { assignmentWith } from '#src/toolbox/testing/assignment.ts'
import { type Access, type AccessQuestion, toolboxPort } from '#src/wire/access.ts'
import type { SandboxHere } from '#src/wire/gate-link.ts'
import type { Allowed } from '#src/wire/ticket.ts'
import type { GateConfig } from '../config.ts'
import type { Entering } from '../door.ts'
import { type GateBounds, startGate } from '../main.ts'
import type { RunnerLink } from '../runner-link.ts'
import type { AdmittedSandbox } from '../sandboxes.ts'
import { newSigner, type Signer } from './signer.ts'

type ControlAnswer = { status: number; body: unknown }

type Seen = { method: string; url: string; headers: IncomingMessage['headers']; body: string }

export type Sides = AsyncDisposable & {
  url: string
  port: number
  /** Where the gate listens for other gates. */
  peersPort: number | undefined
  controlPort: number
  /**
   * `asked`: the questions that the gate has sent to control, oldest first. `askedWith`: method, URL and Authorization
   * header of each of them.
   */
  asked: AccessQuestion[]
  askedWith: string[]
  /** The calls that reached the toolbox or the sandbox's server, with their complete bodies. */
  seen: Seen[]
  control: { answer: (question: AccessQuestion) => ControlAnswer }
  /** Sends a message to the gate over the gate's WebSocket to control. Settles when the gate has handled it. */
  tell: (text: string) => Promise<void>
  access: (more?: Partial<Access>) => ControlAnswer
  toolbox: {
    call: RequestListener
    upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
    /** The refusal of an upgrade. Absent: the upgrade is accepted. */
    refusal?: Problem
  }
  /** Handlers of the server inside the sandbox, which serves every port. */
  inside: { call: RequestListener; upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void }
  /** The sandboxes that the gate has looked up, with control's answer about each. */
  wanted: AdmittedSandbox[]
  /** The status of the sandbox that its runner reports. */
  status: SandboxHere['status']
  /** The ports that agents were asked to connect to. */
  dialled: string[]
  /** The refusal with which agents answer a connect. Undefined: agents connect. */
  dialRefusal: AgentRefused['stage'] | undefined
  /** If set, handles connections into the sandbox, instead of the simulated HTTP server. */
  insideSocket: ((socket: Socket) => void) | undefined
}

export const bodyOf = async (message: AsyncIterable<Buffer>): Promise<string> => {
  const parts: Buffer[] = []
  for await (const part of message) parts.push(part)
  return Buffer.concat(parts).toString()
}

const listen = async (server: Server, at: number) => {
  server.listen(at, '127.0.0.1')
  await once(server, 'listening')
}

/** Starts a gate, and simulates what it talks to. `signer` signs the tickets; several gates of one server can share one signer. */
export const startSides = async (
  bounds: GateBounds = {},
  { signer = newSigner(), ...config }: Partial<GateConfig> & { signer?: Signer } = {},
): Promise<Sides> => {
  const access = (more: Partial<Access> = {}): ControlAnswer => ({
    status: 200,
    body: {
      ticket: signer.sign(),
      sandboxId: 'box-id',
      organizationId: 'org',
      runnerAddress: 'unix:/nowhere/runner.sock',
      isStarted: true,
      state: 'started',
      openedBy: 'bearer',
      isBearerOurs: false,
      warnsVisitors: false,
      ...more,
    },
  })
  /** Adds to an answer the ticket that control would sign for this question. */
  const withTicket = (body: unknown, { port }: AccessQuestion): unknown => {
    const { sandboxId, organizationId } = body as Partial<Access>
    if (sandboxId === undefined || organizationId === undefined) return body
    const allowed: Allowed = port === undefined || port === toolboxPort ? { kind: 'toolbox' } : { kind: 'port', port }
    return { ...(body as object), ticket: signer.sign({ sandboxId, organizationId, allowed }) }
  }
  const sides = {
    asked: [] as AccessQuestion[],
    askedWith: [] as string[],
    seen: [] as Seen[],
    control: { answer: (_question: AccessQuestion): ControlAnswer => access() },
    toolbox: {
      call: (async (request, response) => {
        const body = await bodyOf(request)
        sides.seen.push({ method: request.method!, url: request.url!, headers: request.headers, body })
        response.end('hello')
      }) as RequestListener,
      upgrade: (_request: IncomingMessage, socket: Duplex) => {
        socket.destroy()
      },
    } as Sides['toolbox'],
    inside: {
      call: (async (request, response) => {
        const body = await bodyOf(request)
        sides.seen.push({ method: request.method!, url: request.url!, headers: request.headers, body })
        response.end('hello from inside')
      }) as RequestListener,
      upgrade: (_request: IncomingMessage, socket: Duplex) => {
        socket.destroy()
      },
    } as Sides['inside'],
    wanted: [] as AdmittedSandbox[],
    status: 'started' as SandboxHere['status'],
    dialled: [] as string[],
    dialRefusal: undefined as AgentRefused['stage'] | undefined,
    insideSocket: undefined as Sides['insideSocket'],
  }

  const control = createServer(async (request, response) => {
    if (request.method === 'GET') {
      const said = request.url === '/api/proxy/ticket-keys' ? { keys: [signer.key] } : {}
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said))
    }
    const question = JSON.parse(await bodyOf(request)) as AccessQuestion
    sides.asked.push(question)
    sides.askedWith.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    const { status, body } = sides.control.answer(question)
    const answer = status === 200 ? withTicket(body, question) : body
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  const links = new WebSocketServer({ server: control, path: '/api/proxy/link' })
  const linked = once(links, 'connection') as Promise<[WebSocket]>
  const tell = async (text: string) => {
    const [link] = await linked
    link.send(text)
    link.ping()
    await once(link, 'pong')
  }
  const inside = createServer((request, response) => sides.inside.call(request, response))
  inside.on('upgrade', (request, socket, head) => sides.inside.upgrade(request, socket, head))
  // The connections to the simulated sandbox, on the sandbox's side. A test can send invalid HTTP on them.
  const atDoor = new Set<Socket>()
  const door = createSocketServer((socket) => {
    atDoor.add(socket)
    socket.once('close', () => atDoor.delete(socket))
    socket.on('error', () => undefined)
    if (sides.insideSocket) sides.insideSocket(socket)
    else inside.emit('connection', socket)
  })
  await listen(control, 0)
  await listen(door as Server, 0)
  /** Returns a sandbox as a runner reports it. `organizationId`: the sandbox's owner. */
  const here = (id: string, organizationId: string): SandboxHere => ({
    id,
    assignment: assignmentWith({ sandboxId: id, organizationId }),
    status: sides.status,
    socketPath: id,
  })
  const sandboxes = {
    find: async (wanted: AdmittedSandbox) => {
      sides.wanted.push(wanted)
      const organizationId = signer.read((wanted as Entering).ticket)?.organizationId ?? 'org'
      return { sandbox: here(wanted.sandboxId, organizationId), link: {} as RunnerLink }
    },
    linkTo: () => ({}) as RunnerLink,
  }
  const dial = async (id: string, port: number) => {
    sides.dialled.push(`${id}:${port}`)
    if (sides.dialRefusal !== undefined) throw new AgentRefused(sides.dialRefusal, 'ECONNREFUSED')
    const there = { port: (door.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true }
    return Inflow.to(there).hearOut()
  }
  const gate = await startGate(
    {
      listen: { host: '127.0.0.1', port: 0 },
      controlUrl: new URL(`http://127.0.0.1:${(control.address() as AddressInfo).port}`),
      proxyKey: 'the-proxy-key',
      publicUrl: new URL('http://80-own.proxy.test'),
      runnerSocket: undefined,
      executeTimeoutSeconds: 10,
      ...config,
    },
    silentLog(),
    { presenceMs: 60_000, ...bounds },
    {
      sandboxes,
      agentAt: (id) => ({ dial: (port) => dial(id, port) }),
      toolbox: {
        call: (request, response) => sides.toolbox.call(request, response),
        upgrade: async (request, socket, head) => {
          if (sides.toolbox.refusal) throw sides.toolbox.refusal
          sides.toolbox.upgrade(request, socket, head)
          return 101
        },
      },
    },
  )
  const stop = async (server: Server) => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return Object.assign(sides, {
    url: `http://127.0.0.1:${gate.port}`,
    port: gate.port,
    peersPort: gate.peersPort,
    controlPort: (control.address() as AddressInfo).port,
    access,
    tell,
    async [Symbol.asyncDispose]() {
      await gate.close()
      links.close()
      await stop(control)
      for (const socket of atDoor) socket.destroy()
      await new Promise((resolve) => door.close(resolve))
    },
  })
}
