// Serves a unix socket for work that the gate requests from the runner, which is root (wire/gate-link.ts). Only root and the gate's
// group can open the socket. This process never interprets what callers upload.
import { once } from 'node:events'
import { chmod, chown, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { Compile } from 'typebox/compile'
import { BrokenStream, Frames, jsonFrameOf, sendFrame } from '#src/kit/length-frames.ts'
import type { Logger } from '#src/kit/log.ts'
import { FairQueue } from '#src/kit/queue.ts'
import { Problem } from '#src/problems.ts'
import { GateRequest, type MemoryKillsHere, requestBytes } from '#src/wire/gate-link.ts'
import type { ContextStore } from '../contexts/store.ts'
import type { Host } from '../host.ts'
import { compile } from './compiler.ts'
import { askContexts } from './contexts.ts'
import { typeRemover } from './type-remover.ts'
import { tellGate, type WatchParts } from './watch.ts'

type GateParts = WatchParts & {
  host: WatchParts['host'] & Pick<Host, 'measure' | 'memoryKills'>
  /** The store of contexts: the files that come with definitions. */
  contexts: ContextStore
  log: Logger
}

/** Maximum number of connections at a time. One gate needs fewer, because it queues its requests. */
const mostConnections = 1024
/**
 * Time limits in milliseconds for receiving a request (`requestMs`), and for receiving a caller's TypeScript program (`sourceMs`).
 * A gate sends each without pauses.
 */
const requestMs = 5000
const sourceMs = 10_000
const sourceBytes = 1024 * 1024
/**
 * Maximum number of TypeScript compilations at a time. Each may use half a GiB of memory. A gate requests at most two at a time,
 * but there may be several gates.
 */
const compilers = new FairQueue({ atOnce: 8 })

const isRequest = Compile(GateRequest)

const noRequest = (cause?: unknown) => new Problem('bad_request', 'This is no request of a gate.', { cause })

const parse = (message: Buffer | undefined): unknown => {
  try {
    return JSON.parse(message?.toString() ?? 'null')
  } catch (error) {
    throw noRequest(error)
  }
}

const readRequest = (message: Buffer | undefined): GateRequest => {
  const request = parse(message)
  if (!isRequest.Check(request)) throw noRequest()
  return request as GateRequest
}

const asProblem = (error: unknown): Problem => {
  if (error instanceof Problem) return error
  return error instanceof BrokenStream ? noRequest(error) : new Problem('internal', undefined, { cause: error })
}

/** Yields the body of a request. Throws if the gate closes the connection before the end of the body. */
async function* bodyIn(frames: Frames): AsyncGenerator<Buffer> {
  for (;;) {
    const piece = await frames.next()
    if (piece === undefined) throw new Problem('bad_request', 'The body has no end.')
    if (piece.length === 0) return
    yield piece
  }
}

const textOf = async (body: AsyncIterable<Buffer>): Promise<string> => {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.length
    if (bytes > sourceBytes) throw new Problem('too_large')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

/** Waits for `coming`. If `coming` takes longer than `ms`, closes the connection. */
const inTime = <T>(socket: Socket, coming: Promise<T>, ms: number): Promise<T> => {
  const late = setTimeout(() => socket.destroy(), ms)
  return coming.finally(() => clearTimeout(late))
}

const answerTo = async (
  { host, contexts }: GateParts,
  request: GateRequest,
  frames: Frames,
  socket: Socket,
): Promise<unknown> => {
  switch (request.ask) {
    case 'measure':
      return await host.measure(request.sandboxId)
    case 'memory-kills':
      return host.memoryKills(request.sandboxId) satisfies MemoryKillsHere
    case 'type-remover':
      return await typeRemover()
    case 'compile': {
      const gone = new AbortController()
      socket.once('close', () => gone.abort())
      const source = await inTime(socket, textOf(bodyIn(frames)), sourceMs)
      return await compilers.run(() => compile(source, request.format, gone), gone)
    }
    default:
      return await askContexts(contexts, request, bodyIn(frames))
  }
}

const serve = async (parts: GateParts, socket: Socket): Promise<void> => {
  const frames = new Frames(socket, requestBytes)
  try {
    const request = readRequest(await inTime(socket, frames.next(), requestMs))
    if (request.ask === 'watch') return await tellGate(parts, socket)
    const value = await answerTo(parts, request, frames, socket)
    socket.end(jsonFrameOf({ value: value ?? null }))
  } catch (error) {
    if (socket.destroyed) return
    const problem = asProblem(error)
    if (problem.status >= 500) parts.log.warn({ err: error, cause: problem.cause }, 'a request of the gate failed')
    await sendFrame(socket, jsonFrameOf({ refused: { code: problem.code, message: problem.message } }))
    socket.end()
  }
}

/** Serves gates on the socket at `path`. Replaces a socket that an earlier runner has left there. */
export const serveGates = async (parts: GateParts, path: string, gid: number): Promise<AsyncDisposable> => {
  const open = new Set<Socket>()
  const served = new Set<Promise<void>>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket)
    socket.on('error', () => socket.destroy()).once('close', () => open.delete(socket))
    const serving = serve(parts, socket)
      .catch(() => void socket.destroy())
      .finally(() => served.delete(serving))
    served.add(serving)
  })
  server.maxConnections = mostConnections
  await rm(path, { force: true })
  const before = process.umask(0o177)
  try {
    server.listen(path)
    await once(server, 'listening')
  } finally {
    process.umask(before)
  }
  await chown(path, process.getuid?.() ?? 0, gid)
  await chmod(path, 0o660)
  return {
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of open) socket.destroy()
      await closed
      // Wait until all requests of gates have ended. A request that receives an upload removes the incomplete data before it ends.
      await Promise.all(served)
    },
  }
}
