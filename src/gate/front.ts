// The gate's HTTP server. The server reads only the heads of calls, and the bodies of uploads (object-storage/). Other bodies go to
// the toolbox in this process, or pass unchanged into sandboxes or to other gates. Control checks every call before a byte of the
// call reaches the toolbox or a sandbox.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { answersWithin, hasBody } from '#src/http/answer.ts'
import { type ConnectionBounds, Connections, headTimes } from '#src/http/connections.ts'
import { findBadHead } from '#src/http/head.ts'
import { refuseBadHttp } from '#src/http/linger.ts'
import { SlowBodies, type SlowBodiesBounds, tooSlow } from '#src/http/slow-bodies.ts'
import { cutOffIdle } from '#src/http/unread-answers.ts'
import { Budget } from '#src/kit/budget.ts'
import type { Logger } from '#src/kit/log.ts'
import { logLevelOf, Problem } from '#src/problems.ts'
import { toolboxDocument } from '#src/toolbox/openapi.ts'
import { type Access, type AccessQuestion, signedToken, toolboxPort } from '#src/wire/access.ts'
import type { UploadAccess } from '#src/wire/contexts.ts'
import { localGateId } from '#src/wire/hosts.ts'
import type { AccessDesk } from './access.ts'
import { corsHeaders, preflightHeaders } from './cors.ts'
import { follow, followUpgrade } from './follow.ts'
import { forward } from './forward.ts'
import { NotStarted } from './hindrance.ts'
import type { Inside } from './inside.ts'
import { isObjectStorage } from './object-storage/place.ts'
import { createObjectStorage } from './object-storage/serve.ts'
import type { Peers } from './peers/peers.ts'
import { keepPresent } from './presence.ts'
import { isForPreview, type PreviewAddress, readPreviewAddress } from './previews/address.ts'
import { insideOf } from './previews/destination.ts'
import { refusalPage } from './previews/pages.ts'
import { checkAtId, showPreview } from './previews/show.ts'
import { isForPerson, isPreflight, questionOf as previewQuestionOf } from './previews/visitor.ts'
import { asRefusal, refuse, refuseUpgrade } from './refusal.ts'
import { isToldAfterUpgrade, refuseSocket } from './refuse-socket.ts'
import type { Sandboxes } from './sandboxes.ts'
import { inOriginForm, questionOf, readTarget, type Target } from './target.ts'
import { type Answering, passCall, passUpgrade } from './toolbox-calls.ts'
import { handOver } from './upgrade.ts'

export type FrontBounds = {
  presenceMs?: number
  /** Maximum number of open calls of one organization. */
  openOfOne?: number
  /** A toolbox answer is cut off if the caller reads none of it for this many milliseconds. */
  idleMs?: number
  /**
   * After the last answer on a connection, the gate waits at most this many milliseconds for the caller to close the connection.
   */
  lingerMs?: number
  connections?: ConnectionBounds
  /** Limits for slow request bodies to a toolbox. Bodies to previews have no such limits. */
  slow?: SlowBodiesBounds
}

export type FrontParts = FrontBounds & {
  access: AccessDesk
  sandboxes: Pick<Sandboxes, 'linkTo'>
  inside: Pick<Inside, 'request'>
  toolbox: Answering
  peers: Pick<Peers, 'isElsewhere' | 'destinationOf'>
  /** The socket of this host's runner, if the host has a runner. */
  runnerSocket?: string | undefined
  gateId?: string | undefined
  log: Logger
  /** The gate's own host name. A call to this name is for a preview only if its path begins with `/preview/`. */
  ownHost: string
}

const openCalls = 8192
const headBytes = 32 * 1024

const checkHead = (request: IncomingMessage): void => {
  const complaint = findBadHead(request)
  if (complaint !== undefined) throw new Problem('bad_request', complaint)
}

/**
 * Returns the toolbox call for a preview address with port 2280. The token of a signed address gives access to this port, and
 * a cookie does not.
 */
const toolboxTarget = ({ sandbox, path, query, queryToken }: PreviewAddress, method: string): Target => ({
  ...readTarget(`/toolbox/${encodeURIComponent(sandbox)}${path}${query}`, method),
  queryToken,
  ...(signedToken.test(sandbox) ? { port: toolboxPort } : {}),
})

type Front = {
  server: Server
  /** Ends all open connections immediately. */
  hangUp: () => void
}

export const createFront = ({
  access,
  sandboxes,
  inside,
  toolbox,
  peers,
  runnerSocket,
  gateId,
  log,
  ownHost,
  presenceMs,
  idleMs,
  lingerMs,
  openOfOne = openCalls / 2,
  connections: bounds,
  slow,
}: FrontParts): Front => {
  const calls = new Budget({ each: openOfOne, all: openCalls })
  const connections = new Connections(bounds)
  const slowBodies = new SlowBodies(slow)
  const upgraded = new Set<Duplex>()
  let toolboxDescription: string | undefined
  /**
   * Returns the address of the runner that stores an upload. The runners of all hosts share one store for uploads. So if
   * control names a runner of another host, this host's runner is used.
   */
  const ownRunner = ({ runnerAddress, gateId: id = localGateId }: UploadAccess): string => {
    if (id === (gateId ?? localGateId)) return runnerAddress
    if (runnerSocket === undefined)
      throw new Problem('unavailable', 'This gate has no runner that can store the files.')
    return `unix:${runnerSocket}`
  }
  const callObjectStorage = createObjectStorage({
    ask: (question) => access.askForUpload(question),
    linkFor: (upload) => sandboxes.linkTo(ownRunner(upload)),
    log,
  })

  const addressOf = ({ url = '/', headers }: IncomingMessage) => readPreviewAddress(url, headers.host, ownHost)

  /** Whether the call is for the toolbox. False for an invalid address. */
  const isToolbox = (request: IncomingMessage): boolean => {
    try {
      const address = addressOf(request)
      return address === undefined || address.port === toolboxPort
    } catch {
      return false
    }
  }

  /**
   * Asks control whether the call is allowed and where its sandbox is. Throws a Problem if control refuses, or if the sandbox
   * is not started. `mayBePaused`: a paused sandbox is accepted too.
   */
  const admit = async (question: AccessQuestion, { mayBePaused = false } = {}): Promise<Access> => {
    const place = await access.ask(question)
    const isFine = place.isStarted || (mayBePaused && place.state === 'paused')
    if (!isFine) throw new NotStarted(place.state)
    return place
  }

  /** Registers an open call. Returns the function to run when the call ends. Throws if the organization has too many open calls. */
  const present = (
    { organizationId, openedBy }: Access,
    question: AccessQuestion,
    connection: Duplex,
    end: () => void,
  ) => {
    connections.admit(connection, openedBy !== 'public', organizationId)
    if (!calls.take(organizationId))
      throw new Problem('rate_limited', 'This organization has too many calls open at once.')
    // Only the credential that gave the call access is checked again. Other credentials of the call may have expired.
    const credentials = question.credentials.filter(({ kind }) => kind === openedBy)
    const stop = keepPresent(access, { ...question, credentials, wasLetIn: true }, end, presenceMs)
    return () => {
      stop()
      calls.give(organizationId)
    }
  }

  const note = (problem: Problem) => {
    if (problem.status < 500) return
    log[logLevelOf(problem)]({ cause: problem.cause }, problem.message)
  }

  const callToolbox = async (request: IncomingMessage, response: ServerResponse, onForward: () => void) => {
    if (request.method === 'OPTIONS') {
      response.writeHead(204, preflightHeaders(request)).end()
      return
    }
    if (request.url === '/healthz') {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"status":"ok"}')
      return
    }
    if (request.url === '/openapi.json') {
      toolboxDescription ??= JSON.stringify(toolboxDocument())
      // The answer has CORS headers, because the dashboard fetches this description from another origin.
      response.writeHead(200, [...corsHeaders(request), 'Content-Type', 'application/json']).end(toolboxDescription)
      return
    }
    await intoToolbox(readTarget(request.url ?? '/', request.method ?? 'GET'), request, response, onForward)
  }

  /**
   * Ends the call if its request body arrives too slowly. The caller gets a Problem. If an answer has begun, or nobody
   * reads the body, the connection is closed.
   */
  const followBody = (request: IncomingMessage, response: ServerResponse) => {
    if (!hasBody(request) || request.complete) return
    const unfollow = slowBodies.follow(request, () => {
      if (response.headersSent || request.listenerCount('error') === 0) response.destroy()
      else request.emit('error', new Problem('timeout', tooSlow))
    })
    response.once('close', unfollow)
  }

  const intoToolbox = async (
    target: Target,
    request: IncomingMessage,
    response: ServerResponse,
    onForward: () => void,
    check = (_place: Access): void => {},
  ) => {
    const question = questionOf(request.headers, target)
    const place = await admit(question, { mayBePaused: target.onlyLooks })
    check(place)
    if (response.destroyed) return
    const leave = present(place, question, request.socket, () => response.destroy())
    response.once('close', leave)
    onForward()
    cutOffIdle(response, idleMs)
    followBody(request, response)
    if (!peers.isElsewhere(place)) {
      return passCall(toolbox, request, response, { entering: place, rest: target.rest })
    }
    await forward({ request, response, destination: peers.destinationOf(request, place, target.rest) })
  }

  const callPreview = async (
    address: PreviewAddress,
    request: IncomingMessage,
    response: ServerResponse,
    onForward: () => void,
  ) => {
    const question = previewQuestionOf(request, address)
    const place = await admit(question)
    if (response.destroyed) return
    const leave = present(place, question, request.socket, () => response.destroy())
    await showPreview(inside, {
      request,
      response,
      address,
      access: place,
      credentials: question.credentials,
      onForward,
    }).finally(leave)
  }

  /** Answers the visitor of a preview whose call is refused. A preflight carries no credentials, so it gets its answer anyway. */
  const refuseVisitor = (problem: Problem, request: IncomingMessage, response: ServerResponse) => {
    if (isPreflight(request)) response.writeHead(204, preflightHeaders(request)).end()
    else refuse(problem, request, response, isForPerson(request) ? refusalPage(problem) : undefined)
  }

  const onCall = async (request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean) => {
    const onForward = () => {
      if (awaitsContinue) response.writeContinue()
    }
    let refuseAs = refuseVisitor
    try {
      const complaint = findBadHead(request)
      const isForStorage = isObjectStorage(request.url ?? '/')
      // Refuse an invalid head before its host name is read. Calls to the object storage are refused later: their clients
      // expect XML.
      if (complaint !== undefined && !isForStorage) throw new Problem('bad_request', complaint)
      const address = complaint === undefined ? addressOf(request) : undefined
      if (address?.port === toolboxPort) {
        refuseAs = refuse
        if (request.method === 'OPTIONS') return void response.writeHead(204, preflightHeaders(request)).end()
        const target = toolboxTarget(address, request.method ?? 'GET')
        return await intoToolbox(target, request, response, onForward, (place) => checkAtId(address, place))
      }
      if (address === undefined) {
        if (isForStorage) {
          return await callObjectStorage(request, response, (organizationId) => {
            connections.admit(request.socket, true, organizationId)
            onForward()
          })
        }
        refuseAs = refuse
        return await callToolbox(request, response, onForward)
      }
      await callPreview(address, request, response, onForward)
    } catch (error) {
      const problem = asRefusal(error)
      note(problem)
      refuseAs(problem, request, response)
    }
  }

  type Upgrade = { request: IncomingMessage; socket: Duplex; head: Buffer }

  /** Asks control whether an upgrade is allowed. The returned `goOn` connects the caller to the destination. */
  const admitUpgrade = async ({ request, socket, head }: Upgrade) => {
    checkHead(request)
    const address = addressOf(request)
    if (address === undefined || address.port === toolboxPort) {
      const target = address === undefined ? readTarget(request.url ?? '/', 'GET') : toolboxTarget(address, 'GET')
      const question = questionOf(request.headers, target)
      const place = await admit(question)
      if (address !== undefined) checkAtId(address, place)
      const goOn = () => {
        if (!peers.isElsewhere(place)) {
          return passUpgrade(toolbox, request, socket, { head, entering: place, rest: target.rest })
        }
        const destination = peers.destinationOf(request, place, target.rest)
        return handOver({ socket, head, destination, lingerMs })
      }
      return { question, place, goOn }
    }
    const question = previewQuestionOf(request, address)
    const place = await admit(question)
    checkAtId(address, place)
    const destination = insideOf(inside, { request, address, access: place, credentials: question.credentials })
    return { question, place, goOn: () => handOver({ socket, head, destination, lingerMs }) }
  }

  /** Handles an upgrade. Returns the status of the answer, or `undefined` if the caller has disconnected. */
  const onUpgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    try {
      const { question, place, goOn } = await admitUpgrade({ request, socket, head })
      if (socket.destroyed) return undefined
      const leave = present(place, question, socket, () => socket.destroy())
      upgraded.add(socket)
      const onClose = () => {
        upgraded.delete(socket)
        leave()
      }
      socket.once('close', onClose)
      return await Promise.resolve()
        .then(goOn)
        .catch((error: unknown) => {
          if (!socket.destroyed) onClose()
          socket.off('close', onClose)
          throw error
        })
    } catch (error) {
      const problem = asRefusal(error)
      note(problem)
      if (socket.destroyed) return problem.status
      if (isToolbox(request) && isToldAfterUpgrade(problem, request)) {
        refuseSocket(problem, request, socket, head, lingerMs)
        return 101
      }
      refuseUpgrade(problem, request, socket, lingerMs)
      return problem.status
    }
  }

  const server = createServer({
    ServerResponse: answersWithin(),
    maxHeaderSize: headBytes,
    ...headTimes,
    // A large upload may take long, so the total time has no limit. `slow` limits bodies that arrive too slowly.
    requestTimeout: 0,
    keepAliveTimeout: 90_000,
    noDelay: true,
    // Some clients offer HTTP/2 with an ordinary call; the offer is ignored (RFC 9110 §7.8).
    shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
  })
  connections.watch(server)
  const isPreview = (request: IncomingMessage) => isForPreview(request.url ?? '/', request.headers.host, ownHost)
  const serve = (request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean) => {
    if (!connections.begin(request.socket, response)) return
    follow(inOriginForm(request), response, isPreview, () => onCall(request, response, awaitsContinue))
  }
  server.on('request', (request, response) => serve(request, response, false))
  server.on('checkContinue', (request, response) => serve(request, response, true))
  server.on('upgrade', (request, socket, head) => {
    if (!connections.begin(socket)) return
    followUpgrade(inOriginForm(request), isPreview, () => onUpgrade(request, socket, head))
  })
  server.on('clientError', (error, socket) => refuseBadHttp(error, socket, lingerMs))
  const hangUp = () => {
    for (const socket of upgraded) socket.destroy()
    server.closeAllConnections()
  }
  return { server, hangUp }
}
