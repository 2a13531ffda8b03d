// Both neighbours of the proxy, as a test needs them: a control that answers what the test says and remembers what it
// was asked, and a runner on a unix socket. The proxy between them is the real one.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { silentLog } from '#src/kit/log.ts'
import type { Access, AccessQuestion } from '#src/wire/access.ts'
import { startProxy } from './main.ts'

export type ControlAnswer = { status: number; body: unknown }

export type Seen = { method: string; url: string; headers: IncomingMessage['headers']; body: string }

export type Sides = AsyncDisposable & {
  url: string
  port: number
  /** What control was asked, oldest first; the key it was asked with. */
  asked: AccessQuestion[]
  askedWith: string[]
  /** Calls that reached the runner, with their whole bodies. */
  seen: Seen[]
  /** Every socket that reached the runner. */
  runnerConnections: () => number
  control: { answer: (question: AccessQuestion) => ControlAnswer }
  access: (more?: Partial<Access>) => ControlAnswer
  runner: { call: RequestListener; upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void }
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

export const startSides = async ({ presenceMs = 60_000 } = {}): Promise<Sides> => {
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
  }

  const control = createServer(async (request, response) => {
    const question = JSON.parse(await bodyOf(request)) as AccessQuestion
    sides.asked.push(question)
    sides.askedWith.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    const { status, body } = sides.control.answer(question)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  const runner = createServer((request, response) => sides.runner.call(request, response))
  runner.on('upgrade', (request, socket, head) => sides.runner.upgrade(request, socket, head))
  const sockets = new Set<Duplex>()
  runner.on('connection', (socket) => {
    connections += 1
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await listen(control, 0)
  await listen(runner, socketPath)
  const proxy = await startProxy(
    {
      listen: { host: '127.0.0.1', port: 0 },
      controlUrl: new URL(`http://127.0.0.1:${(control.address() as AddressInfo).port}`),
      proxyKey: 'the-proxy-key',
    },
    silentLog(),
    { presenceMs },
  )
  const stop = async (server: Server) => {
    server.closeAllConnections()
    if (server === runner) for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  return Object.assign(sides, {
    url: `http://127.0.0.1:${proxy.port}`,
    port: proxy.port,
    access,
    runnerConnections: () => connections,
    stopRunner: () => stop(runner),
    async [Symbol.asyncDispose]() {
      await stop(control)
      await stop(runner)
      await proxy.close()
      await rm(directory, { recursive: true, force: true })
    },
  })
}
