// The proxy's own HTTP front. It reads heads only: bodies pass through as they are. Every call is checked with control
// before one byte of it reaches a runner.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from '#src/kit/log.ts'
import { Problem } from '#src/problems.ts'
import type { Access, AccessQuestion } from '#src/wire/access.ts'
import type { AccessDesk } from './access.ts'
import { preflightHeaders } from './cors.ts'
import { questionOf } from './credential.ts'
import { forward } from './forward.ts'
import { keepPresent } from './presence.ts'
import { asRefusal, headOf, refuse, refuseUpgrade } from './refusal.ts'
import type { Runners } from './runners.ts'
import { readTarget } from './target.ts'
import { handOver } from './upgrade.ts'

export type FrontParts = { access: AccessDesk; runners: Runners; log: Logger; presenceMs?: number }

const openConnections = 8192
const headBytes = 32 * 1024

export type Front = { server: Server /** Ends what is open, at once. */; hangUp: () => void }

export const createFront = ({ access, runners, log, presenceMs }: FrontParts): Front => {
  const upgraded = new Set<Duplex>()

  /** Who calls, for which sandbox, and where that is; throws the refusal. */
  const admit = async (request: IncomingMessage) => {
    const target = readTarget(request.url ?? '/')
    const question = questionOf(request.headers, target)
    const place: Access = await access.ask(question)
    if (!place.isStarted) throw new Problem('conflict', `The sandbox is not started: it is ${place.state}.`)
    return { question, place, path: `/toolbox/${encodeURIComponent(place.sandboxId)}${target.rest || '/'}` }
  }

  const present = (question: AccessQuestion, end: () => void) => keepPresent(access, question, end, presenceMs)

  const note = (problem: Problem) => {
    if (problem.status < 500) return
    log[problem.code === 'internal' ? 'error' : 'warn']({ cause: problem.cause }, problem.message)
  }

  const onCall = async (request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean) => {
    try {
      if (request.method === 'OPTIONS') {
        response.writeHead(204, preflightHeaders(request)).end()
        return
      }
      if (request.url === '/healthz') {
        response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"status":"ok"}')
        return
      }
      const { question, place, path } = await admit(request)
      if (response.destroyed) return
      if (awaitsContinue) response.writeContinue()
      const leave = present(question, () => response.destroy())
      await forward(runners, { request, response, runnerAddress: place.runnerAddress, path }).finally(leave)
    } catch (error) {
      const problem = asRefusal(error)
      note(problem)
      refuse(problem, request, response)
    }
  }

  const onUpgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    try {
      const { question, place, path } = await admit(request)
      if (socket.destroyed) return
      if (!(await handOver(runners, { request, socket, head, runnerAddress: place.runnerAddress, path }))) return
      upgraded.add(socket)
      const leave = present(question, () => socket.destroy())
      socket.once('close', () => {
        upgraded.delete(socket)
        leave()
      })
      if (socket.destroyed) socket.emit('close')
    } catch (error) {
      const problem = asRefusal(error)
      note(problem)
      if (!socket.destroyed) refuseUpgrade(problem, request, socket)
    }
  }

  const server = createServer({
    maxHeaderSize: headBytes,
    headersTimeout: 20_000,
    // A large upload may take as long as it takes; its toolbox has its own bounds.
    requestTimeout: 0,
    keepAliveTimeout: 90_000,
    noDelay: true,
  })
  server.maxConnections = openConnections
  server.on('request', (request, response) => onCall(request, response, false))
  server.on('checkContinue', (request, response) => onCall(request, response, true))
  server.on('upgrade', onUpgrade)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') return socket.destroy()
    const isLong = error.code === 'HPE_HEADER_OVERFLOW'
    socket.end(
      headOf(isLong ? 431 : 400, isLong ? 'Request Header Fields Too Large' : 'Bad Request', ['Connection', 'close']),
    )
  })
  const hangUp = () => {
    for (const socket of upgraded) socket.destroy()
    server.closeAllConnections()
  }
  return { server, hangUp }
}
