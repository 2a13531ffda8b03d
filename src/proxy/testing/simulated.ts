// Both neighbours of the proxy, as a test needs them: a control that answers what the test says and remembers what it
// was asked, and a runner on a unix socket, behind which a server inside a sandbox listens. The proxy between them is the
// real one.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as createSocketServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { silentLog } from '#src/kit/log.ts'
import { type Access, type AccessQuestion, generationHeader } from '#src/wire/access.ts'
import type { FrontBounds } from '../front.ts'
import { startProxy } from '../main.ts'

type ControlAnswer = { status: number; body: unknown }

type Seen = { method: string; url: string; headers: IncomingMessage['headers']; body: string }

export type Sides = AsyncDisposable & {
  url: string
  port: number
  controlPort: number
  /** What control was asked, oldest first; the key it was asked with. */
  asked: AccessQuestion[]
  askedWith: string[]
  /** Calls that reached the runner, with their whole bodies. */
  seen: Seen[]
  /** Every socket that reached the runner. */
  runnerConnections: () => number
  control: { answer: (question: AccessQuestion) => ControlAnswer }
  /** Said to the proxy over its link; settles when it has taken it. */
  tell: (text: string) => Promise<void>
  access: (more?: Partial<Access>) => ControlAnswer
  runner: { call: RequestListener; upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void }
  /** The server inside: every port of the sandbox is this one. */
  inside: { call: RequestListener; upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void }
  /** What the runner was asked to connect to. */
  dialled: string[]
  /** The generation that the last of them named. */
  dialledFor: string | undefined
  /** What the runner answers to that. */
  dialStatus: number
  /** Instead of HTTP. */
  insideSocket: ((socket: Socket) => void) | undefined
  stopRunner: () => Promise<void>
}

export const bodyOf = async (message: AsyncIterable<Buffer>): Promise<string> => {
  const parts: Buffer[] = []
  for await (const part of message) parts.push(part)
  return Buffer.concat(parts).toString()
}

const listen = async (server: Server, at: string | number) => {
  if (typeof at === 'string') server.listen(at)
  else server.listen(at, '127.0.0.1')
  await once(server, 'listening')
}

export const startSides = async (bounds: FrontBounds = {}): Promise<Sides> => {
  const directory = await mkdtemp(join(tmpdir(), 'alcove-proxy-'))
  const socketPath = join(directory, 'runner.sock')
  let connections = 0

  const access = (more: Partial<Access> = {}): ControlAnswer => ({
    status: 200,
    body: {
      sandboxId: 'box-id',
      organizationId: 'org',
      runnerAddress: `unix:${socketPath}`,
      isStarted: true,
      state: 'started',
      openedBy: 'bearer',
      isBearerOurs: false,
      warnsVisitors: false,
      ...more,
    },
  })
  const sides = {
    asked: [] as AccessQuestion[],
    askedWith: [] as string[],
    seen: [] as Seen[],
    control: { answer: (_question: AccessQuestion): ControlAnswer => access() },
    runner: {
      call: (async (request, response) => {
        const body = await bodyOf(request)
        sides.seen.push({ method: request.method!, url: request.url!, headers: request.headers, body })
        response.end('hello')
      }) as RequestListener,
      upgrade: (_request: IncomingMessage, socket: Duplex) => {
        socket.destroy()
      },
    } as Sides['runner'],
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
    dialled: [] as string[],
    dialledFor: undefined as string | undefined,
    dialStatus: 200,
    insideSocket: undefined as Sides['insideSocket'],
  }

  const control = createServer(async (request, response) => {
    const question = JSON.parse(await bodyOf(request)) as AccessQuestion
    sides.asked.push(question)
    sides.askedWith.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    const { status, body } = sides.control.answer(question)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  const links = new WebSocketServer({ server: control, path: '/api/proxy/link' })
  const linked = once(links, 'connection') as Promise<[WebSocket]>
  const tell = async (text: string) => {
    const [link] = await linked
    link.send(text)
    link.ping()
    await once(link, 'pong')
  }
  const runner = createServer((request, response) => sides.runner.call(request, response))
  runner.on('upgrade', (request, socket, head) => sides.runner.upgrade(request, socket, head))
  const inside = createServer((request, response) => sides.inside.call(request, response))
  inside.on('upgrade', (request, socket, head) => sides.inside.upgrade(request, socket, head))
  // The server's end of a plain connection, so that a test may say on it what no HTTP server would.
  const atDoor = new Set<Socket>()
  const door = createSocketServer((socket) => {
    atDoor.add(socket)
    socket.once('close', () => atDoor.delete(socket))
    socket.on('error', () => undefined)
    if (sides.insideSocket) sides.insideSocket(socket)
    else inside.emit('connection', socket)
  })
  runner.on('connect', ({ url, headers }, socket) => {
    sides.dialled.push(url!)
    sides.dialledFor = headers[generationHeader]?.toString()
    if (sides.dialStatus !== 200) {
      socket.end(`HTTP/1.1 ${sides.dialStatus} No\r\nContent-Length: 0\r\n\r\n`)
      return
    }
    const there = connect((door.address() as AddressInfo).port, '127.0.0.1')
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    socket.pipe(there).pipe(socket)
    socket.on('error', () => there.destroy()).once('close', () => there.destroy())
    there.on('error', () => socket.destroy())
  })
  const sockets = new Set<Duplex>()
  runner.on('connection', (socket) => {
    connections += 1
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await listen(control, 0)
  await listen(runner, socketPath)
  await listen(door as Server, 0)
  const proxy = await startProxy(
    {
      listen: { host: '127.0.0.1', port: 0 },
      controlUrl: new URL(`http://127.0.0.1:${(control.address() as AddressInfo).port}`),
      proxyKey: 'the-proxy-key',
      publicUrl: new URL('http://80-own.proxy.test'),
    },
    silentLog(),
    { presenceMs: 60_000, ...bounds },
  )
  const stop = async (server: Server) => {
    server.closeAllConnections()
    if (server === runner) for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  return Object.assign(sides, {
    url: `http://127.0.0.1:${proxy.port}`,
    port: proxy.port,
    controlPort: (control.address() as AddressInfo).port,
    access,
    tell,
    runnerConnections: () => connections,
    stopRunner: () => stop(runner),
    async [Symbol.asyncDispose]() {
      await proxy.close()
      links.close()
      await stop(control)
      await stop(runner)
      for (const socket of atDoor) socket.destroy()
      await new Promise((resolve) => door.close(resolve))
      await rm(directory, { recursive: true, force: true })
    },
  })
}
