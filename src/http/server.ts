// An HTTP server made of route rows. The guard runs before the body is read; validation runs before the route's `run`.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import fastifyWebsocket from '@fastify/websocket'
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import type { Logger } from 'pino'
import type { TSchema } from 'typebox'
import type { Attributes } from '#src/kit/telemetry/telemetry.ts'
import { logLevelOf, Problem, retryAfterSeconds } from '#src/problems.ts'
import { answersWithin } from './answer.ts'
import { type Connections, headTimes } from './connections.ts'
import { followCalls, inCall } from './follow.ts'
import { findBadHead } from './head.ts'
import { boundIncoming } from './incoming-bodies.ts'
import { findTooMuch } from './json-text.ts'
import { refuseBadHttp } from './linger.ts'
import { asProblem, renderProblem } from './render-problem.ts'
import type { Route } from './route.ts'
import { longestInPath } from './shapes.ts'
import { answerPings } from './socket.ts'
import { boundUnread } from './unread-answers.ts'
import { refuseUnserved, type Unserved } from './unserved.ts'
import { readPart } from './validate.ts'

type ServerParts<Context extends object, Needs extends string> = {
  routes: readonly Route<Context, Needs>[]
  /** Prefixes such as `['/api', '']`. Every path is served below each of them. */
  prefixes: readonly string[]
  /** Calls of the public API that this server does not serve, with the reason of each. */
  unserved?: Unserved
  /** The name of this program in error bodies, such as `DAYTONA_API`, which clients know. */
  source: string
  /** Finds out who calls, and throws a Problem if the caller may not. Runs before the body is read. */
  guard: (request: FastifyRequest, route: Route<Context, Needs>) => Promise<Context> | Context
  log: Logger
  /** Limits the number of connections. Absent: only our own programs can connect. */
  connections?: Connections
  /** Largest body in bytes. Default: 1 MiB. */
  bodyLimit?: number
  /**
   * Number of reverse proxies in front of the server. Each adds an address to `X-Forwarded-For`. Default: 0, which
   * ignores the header.
   */
  trustedProxies?: number
  /**
   * The owner that the memory of a call counts for (incoming-bodies.ts, unread-answers.ts). For refused callers, and by
   * default, this is the caller's address.
   */
  ownerOf?: (context: Context) => string | undefined
  /** Attributes of a call for telemetry, besides its route. Never a credential. `context` is absent if the call was refused. */
  tell?: (params: Readonly<Record<string, string | undefined>>, context: Context | undefined) => Attributes
}

const refusals = new WeakMap<FastifyRequest, Problem>()

/** Returns the problem with which a request was refused, or undefined. */
export const problemOf = (request: FastifyRequest): Problem | undefined => refusals.get(request)

const contexts = new WeakMap<FastifyRequest, object>()

/** Largest message of a socket in bytes, by default. */
const socketMessageBytes = 4 * 1024 * 1024

/** Largest message of each upgraded request in bytes. */
const messageBytes = new WeakMap<IncomingMessage, number>()

/**
 * Sets the largest message for the socket of an upgrade. The socket is closed with 1009 as soon as a message is longer
 * than `bytes`. Call this before the upgrade.
 */
export const boundMessages = (request: FastifyRequest, bytes: number): void => void messageBytes.set(request.raw, bytes)

const refusalsLeft = new WeakMap<IncomingMessage, (problem: Problem) => void>()

/**
 * Passes the refusal of an upgrade to `onRefusal` instead of sending it as an answer. The code of `onRefusal` then
 * handles the socket.
 */
export const leaveRefusal = (request: IncomingMessage, onRefusal: (problem: Problem) => void): void =>
  void refusalsLeft.set(request, onRefusal)

const leaves = (problem: Problem, request: FastifyRequest, reply: FastifyReply): boolean => {
  const onRefusal = request.ws ? refusalsLeft.get(request.raw) : undefined
  if (onRefusal === undefined) return false
  reply.hijack()
  onRefusal(problem)
  return true
}

const firstStatus = (route: Pick<Route, 'replies'>) => Number(Object.keys(route.replies)[0])

/** Builds the server. The caller then adds its own plugins (CORS, sockets) and starts listening. */
export const createServer = async <Context extends object, Needs extends string>({
  routes,
  prefixes,
  unserved = {},
  source,
  guard,
  log,
  connections,
  bodyLimit = 1024 * 1024,
  trustedProxies = 0,
  ownerOf = () => undefined,
  tell = () => ({}),
}: ServerParts<Context, Needs>): Promise<FastifyInstance> => {
  const server = fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit,
    trustProxy: (_address, hop) => hop < trustedProxies,
    // Keep-alive time in milliseconds. It is longer than that of any client, so that no client reuses a connection
    // while we close it.
    keepAliveTimeout: 90_000,
    http: { ServerResponse: answersWithin() as never, ...headTimes },
    clientErrorHandler: refuseBadHttp,
    genReqId: () => randomUUID(),
    // Returns the server's own logger instead of a child logger per call, which would cost more than the guard. Log
    // lines name the call by `reqId`.
    childLoggerFactory: (logger) => logger,
    routerOptions: { maxParamLength: longestInPath, ignoreTrailingSlash: true },
  })
  followCalls(server, {
    problemOf,
    tell: (request) => tell((request.params ?? {}) as Record<string, string>, contexts.get(request) as Context),
  })
  if (connections !== undefined) {
    connections.watch(server.server)
    server.addHook('onRequest', (request, reply, done) => {
      if (connections.begin(request.raw.socket, request.ws ? undefined : reply.raw)) done()
    })
  }
  /** The preferred subprotocol of an upgrade, if its route names one. */
  const subprotocols = new WeakMap<IncomingMessage, string>()
  await server.register(fastifyWebsocket, {
    // After a protocol error, `ws` itself sends the reason and closes. Destroying the socket here would lose that reason.
    errorHandler: (error, socket, request) => {
      if ((error as NodeJS.ErrnoException).code?.startsWith('WS_ERR_')) return
      inCall(request, () => log.error({ reqId: request.id, err: error }, 'a socket failed'))
      socket.terminate()
    },
    options: {
      autoPong: false,
      // A client that offers subprotocols disconnects if none is selected, so one is always selected.
      handleProtocols: (offered: Set<string>, request: IncomingMessage) => {
        const preferred = subprotocols.get(request)
        return preferred !== undefined && offered.has(preferred) ? preferred : ([...offered][0] ?? false)
      },
    },
  })

  // This hook must come after the hook of the WebSocket plugin. Otherwise a refusal of an upgrade would never be sent.
  server.addHook('onRequest', (request, _reply, done) => {
    const complaint = findBadHead(request.raw)
    done(complaint === undefined ? undefined : new Problem('bad_request', complaint))
  })

  const { websocketServer } = server
  websocketServer.on('connection', answerPings)
  // `ws` has one `maxPayload` for all sockets and copies it to the new socket right after this event.
  websocketServer.on('headers', (_headers, request: IncomingMessage) => {
    websocketServer.options.maxPayload = messageBytes.get(request) ?? socketMessageBytes
  })

  // Fastify's parser for plain text would accept JSON that is sent without a content type, as a string.
  server.removeAllContentTypeParsers()
  // An empty JSON body counts as no body, because clients send the content type on a POST without a body.
  server.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => {
    if (text === '') return done(null, undefined)
    const tooMuch = findTooMuch(text as string)
    if (tooMuch !== undefined) return done(new Problem('bad_request', tooMuch), undefined)
    try {
      done(null, JSON.parse(text as string))
    } catch (error) {
      done(new Problem('invalid_body', undefined, { cause: error }), undefined)
    }
  })
  // Some clients send the content type of a form on a POST without a body. The content type is refused only if there is
  // a body.
  server.addContentTypeParser('*', { parseAs: 'buffer' }, ({ is404, routeOptions }, bytes, done) => {
    const sentence = routeOptions.config.takesJson
      ? 'Send JSON, with the header Content-Type: application/json.'
      : undefined
    done(bytes.length === 0 || is404 ? null : new Problem('media_type', sentence), undefined)
  })

  const ownerOfCall = (request: FastifyRequest): string => {
    const context = contexts.get(request) as Context | undefined
    return (context && ownerOf(context)) ?? request.ip ?? ''
  }
  boundIncoming(server, { ownerOf: ownerOfCall })
  boundUnread(server, { ownerOf: ownerOfCall })
  // This hook is not async on purpose: a promise would delay each answer by one round of the event loop.
  server.addHook('onSend', (request, reply, payload, done) => {
    reply.header('x-request-id', request.id)
    done(null, payload)
  })
  server.setErrorHandler((error, request, reply) => {
    const problem = asProblem(error)
    refusals.set(request, problem)
    if (problem.status >= 500) {
      const said = { reqId: request.id, err: error, cause: problem.cause }
      inCall(request, () => log[logLevelOf(problem)](said, 'request failed'))
    }
    if (leaves(problem, request, reply)) return
    // Fastify closes the connection after a body that it did not read. answer.ts discards the rest of the body, so the
    // connection can serve the next call. After a timeout the connection is closed, because the sender has stopped sending.
    if (problem.code !== 'timeout') reply.removeHeader('connection')
    const seconds = retryAfterSeconds[problem.code]
    if (seconds !== undefined) reply.header('retry-after', String(seconds))
    reply.status(problem.status).send(renderProblem(problem, request, source))
  })
  server.setNotFoundHandler((request, reply) => {
    const problem = new Problem('not_found', `There is no ${request.method} ${request.url.split('?')[0]}.`)
    if (!leaves(problem, request, reply)) reply.status(404).send(renderProblem(problem, request, source))
  })

  const readCall = (route: Route<Context, Needs>, request: FastifyRequest) => {
    const read = (schema: TSchema | undefined, part: 'params' | 'query' | 'body', given: unknown) =>
      schema === undefined ? given : readPart(schema, part, given)
    const hasBody = route.body !== undefined && !(route.bodyOptional && (request.body ?? undefined) === undefined)
    if (hasBody && (request.body === undefined || request.body === null)) {
      throw new Problem('invalid_body', 'This needs a JSON body.')
    }
    return {
      ...(contexts.get(request) as Context),
      params: read(route.params, 'params', request.params),
      query: read(route.query, 'query', request.query),
      body: hasBody ? read(route.body, 'body', request.body) : undefined,
      request,
    }
  }

  const serve = (scope: FastifyInstance, route: Route<Context, Needs>) => {
    for (const prefix of prefixes) {
      const handler = async (request: FastifyRequest, reply: FastifyReply) => {
        const answer = await inCall(request, () => route.run({ ...readCall(route, request), reply }))
        if (reply.sent || reply.raw.headersSent) return reply
        if (reply.statusCode === 200) reply.status(firstStatus(route))
        // An undefined result is sent as an empty body, not as the JSON text `null`.
        return answer === undefined ? reply.send() : answer
      }
      const { socket } = route
      scope.route({
        method: route.method,
        url: `${prefix}${route.path}`,
        ...(route.bodyLimit === undefined ? {} : { bodyLimit: route.bodyLimit }),
        config: { streamsBody: route.streamsBody ?? false, takesJson: route.body !== undefined },
        onRequest: async (request) => {
          contexts.set(request, await inCall(request, () => guard(request, route)))
          if (route.needs !== 'public') connections?.admit(request.raw.socket, true, ownerOfCall(request))
          if (request.ws && socket === undefined) throw new Problem('bad_request', 'This is not a WebSocket.')
        },
        ...(socket === undefined
          ? {}
          : {
              // An error that is thrown here comes before the upgrade, so the answer is plain HTTP.
              preValidation: async (request: FastifyRequest) => {
                if (!request.ws) return
                const call = readCall(route, request)
                if (route.subprotocol !== undefined) subprotocols.set(request.raw, route.subprotocol)
                await inCall(request, () => route.admit?.(call as Parameters<typeof socket>[1]))
              },
              wsHandler: (ws: Parameters<typeof socket>[0], request: FastifyRequest) =>
                socket(ws, readCall(route, request) as Parameters<typeof socket>[1]),
            }),
        handler,
      })
    }
  }
  for (const route of routes.filter(({ streamsBody }) => !streamsBody)) serve(server, route)
  refuseUnserved(server, unserved, { routes, prefixes })
  // In Fastify, content parsers belong to a scope. So the routes that read their own body are in a separate scope.
  await server.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, done) => done(null, undefined))
    for (const route of routes.filter(({ streamsBody }) => streamsBody)) serve(scope, route)
  })
  return server
}
