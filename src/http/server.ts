// An HTTP server that is made from routes. The guard checks the caller before the body is read. Then the schemas check the call.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { TlsOptions } from 'node:tls'
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

export type ServerParts<Context extends object, Needs extends string> = {
  routes: readonly Route<Context, Needs>[]
  /**
   * Beginnings of paths. The server serves each route once per prefix: with `['/api', '']`, the route `/x` at `/api/x`
   * and at `/x`.
   */
  prefixes: readonly string[]
  /** Calls of Daytona's public API that this server does not serve, each with the reason that a caller gets. */
  unserved?: Unserved
  /** The name of this program in error bodies, such as `DAYTONA_API`. Clients expect certain names. */
  source: string
  /** Identifies the caller, and throws a Problem if the caller must not call the route. Runs before the body is read. */
  guard: (request: FastifyRequest, route: Route<Context, Needs>) => Promise<Context> | Context
  log: Logger
  /** Limits the connections. Absent: there is no limit, because only our own programs can connect. */
  connections?: Connections
  /** The server speaks TLS with these options. Absent: it does not speak TLS. */
  tls?: TlsOptions
  /** Largest body in bytes. Default: 1 MiB. */
  bodyLimit?: number
  /** Number of reverse proxies in front of the server that add to `X-Forwarded-For`. Default: 0; the header is then ignored. */
  trustedProxies?: number
  /**
   * Returns the owner that the memory of a call counts for (incoming-bodies.ts, unread-answers.ts). If absent, and for
   * refused callers, the memory counts for the caller's address.
   */
  ownerOf?: (context: Context) => string | undefined
  /**
   * Returns attributes of a call for telemetry. They must not contain a credential. `context` is undefined if the call
   * was refused.
   */
  tell?: (params: Readonly<Record<string, string | undefined>>, context: Context | undefined) => Attributes
}

const refusals = new WeakMap<FastifyRequest, Problem>()

/** Returns the Problem with which the server refused a request. Undefined: the server did not refuse the request. */
export const problemOf = (request: FastifyRequest): Problem | undefined => refusals.get(request)

const contexts = new WeakMap<FastifyRequest, object>()

/** Default for the maximum size of one WebSocket message, in bytes. */
const socketMessageBytes = 4 * 1024 * 1024

/** Maximum size of a WebSocket message in bytes, for requests that have a limit of their own. */
const messageBytes = new WeakMap<IncomingMessage, number>()

/**
 * Sets the maximum size of messages on the WebSocket that this request becomes. A longer message closes the WebSocket with 1009.
 * Must be called before the upgrade.
 */
export const boundMessages = (request: FastifyRequest, bytes: number): void => void messageBytes.set(request.raw, bytes)

const refusalsLeft = new WeakMap<IncomingMessage, (problem: Problem) => void>()

/**
 * If the server refuses this upgrade, it calls `onRefusal` and sends no answer. `onRefusal` must then answer and close the socket.
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

/** Builds the server. The caller then adds plugins of its own (CORS, WebSockets) and starts to listen. */
export const createServer = async <Context extends object, Needs extends string>({
  routes,
  prefixes,
  unserved = {},
  source,
  guard,
  log,
  connections,
  tls,
  bodyLimit = 1024 * 1024,
  trustedProxies = 0,
  ownerOf = () => undefined,
  tell = () => ({}),
}: ServerParts<Context, Needs>): Promise<FastifyInstance> => {
  const http = { ServerResponse: answersWithin() as never, ...headTimes }
  const server = fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit,
    trustProxy: (_address, hop) => hop < trustedProxies,
    // The server keeps idle connections longer than any client does. Otherwise a client could send a call on a connection that the
    // server is closing.
    keepAliveTimeout: 90_000,
    ...(tls === undefined ? { http } : { https: { ...http, ...tls } as never }),
    clientErrorHandler: refuseBadHttp,
    genReqId: () => randomUUID(),
    // Making a logger for each call would take longer than checking the call's credential. Lines of the log name their call by
    // `reqId`.
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
  /** For each request to open a WebSocket: the subprotocol that the called route prefers. No entry: the route prefers none. */
  const subprotocols = new WeakMap<IncomingMessage, string>()
  await server.register(fastifyWebsocket, {
    // If a client violates the WebSocket protocol, `ws` sends it the reason and closes the socket. Destroying the socket
    // here would prevent that.
    errorHandler: (error, socket, request) => {
      if ((error as NodeJS.ErrnoException).code?.startsWith('WS_ERR_')) return
      inCall(request, () => log.error({ reqId: request.id, err: error }, 'a socket failed'))
      socket.terminate()
    },
    options: {
      autoPong: false,
      // A client that offers subprotocols disconnects if the server selects none. If the route prefers none of them,
      // the first one is selected.
      handleProtocols: (offered: Set<string>, request: IncomingMessage) => {
        const preferred = subprotocols.get(request)
        return preferred !== undefined && offered.has(preferred) ? preferred : ([...offered][0] ?? false)
      },
    },
  })

  // This hook must be added after that of the WebSocket plugin. Otherwise the refusal of an upgrade would never be
  // sent.
  server.addHook('onRequest', (request, _reply, done) => {
    const complaint = findBadHead(request.raw)
    done(complaint === undefined ? undefined : new Problem('bad_request', complaint))
  })

  const { websocketServer } = server
  websocketServer.on('connection', answerPings)
  // The library `ws` has one `maxPayload` for all sockets. Directly after the event `headers`, `ws` copies the value to the new
  // socket. So set the value for this socket here.
  websocketServer.on('headers', (_headers, request: IncomingMessage) => {
    websocketServer.options.maxPayload = messageBytes.get(request) ?? socketMessageBytes
  })

  // Fastify's own parser of plain text would also accept JSON that comes without a content type, as a string.
  server.removeAllContentTypeParsers()
  // Some clients send the content type of JSON with a POST that has no body.
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
  // Accepts an empty body of any content type: some clients send an empty POST as a form.
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
  // This hook is not async, because a promise would delay each answer by one round of the event loop.
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
    // Fastify would close the connection, because the body was not read. But answer.ts reads and discards the body. After a
    // `timeout`, the client has stopped sending the body, so the connection must close.
    if (problem.code !== 'timeout') reply.removeHeader('connection')
    const seconds = retryAfterSeconds[problem.code]
    if (seconds !== undefined) reply.header('retry-after', String(seconds))
    reply.status(problem.status).send(renderProblem(problem, request, source))
  })
  server.setNotFoundHandler((request, reply) => {
    const problem = new Problem(
      'not_found',
      `This server has no endpoint ${request.method} ${request.url.split('?')[0]}.`,
    )
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
              // If `route.admit` throws, there is no upgrade, and the caller gets an ordinary HTTP answer.
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
  // Fastify's content parsers apply to a whole scope of routes. Routes that read their body themselves need a scope of their own.
  await server.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, done) => done(null, undefined))
    for (const route of routes.filter(({ streamsBody }) => streamsBody)) serve(scope, route)
  })
  return server
}
