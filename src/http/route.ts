// The type of a route: method, path, required permission, schemas and handler. The routes of all programs have this
// type.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Static, TObject, TSchema } from 'typebox'
import type { WebSocket } from 'ws'

export type Shape<S> = S extends TSchema ? Static<S> : Record<string, never>
type BodyOf<S> = S extends TSchema ? Static<S> : undefined

export type Call<Context, Params, Query, Body> = Context & {
  params: Params
  query: Query
  body: Body
  request: FastifyRequest
  reply: FastifyReply
}

/** A route whose `run` has the types of the route's schemas. `route()` turns it into a {@link Route} without these types. */
export type RouteRow<Context, Needs extends string, P, Q, B> = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The path of the route in Fastify's form: `/sandbox/:sandboxIdOrName/stop`. */
  path: string
  /** Who may call the route. This field has no default, so that a route can become public only on purpose. */
  needs: Needs
  /**
   * True if the route gives access or rights that last longer than the caller's credential. Such a route refuses a credential that
   * expires.
   */
  givesAccess?: boolean
  /** The text about the route in the API reference. */
  summary: string
  params?: P
  query?: Q
  body?: B
  /** True if the body may be absent or null. In both cases, `run` gets `undefined`. */
  bodyOptional?: boolean
  /** Maximum size of the body in bytes. Default: the server's limit. */
  bodyLimit?: number
  /**
   * True if `run` reads the body itself from `request.raw`. `run` must not destroy `request.raw`. Cannot be used
   * together with `body`.
   */
  streamsBody?: boolean
  /**
   * The schema of the answer for each success status; `null` means an empty body. The result of `run` is sent with the
   * first status.
   */
  replies: Record<number, TSchema | null>
  run: (call: Call<Context, Shape<P>, Shape<Q>, BodyOf<B>>) => unknown
  /**
   * Called instead of `run` if the caller upgrades a GET to a WebSocket, after the guard and the schemas have accepted the
   * call.
   */
  socket?: (socket: WebSocket, call: Omit<Call<Context, Shape<P>, Shape<Q>, BodyOf<B>>, 'reply'>) => void
  /**
   * Asynchronous checks before the upgrade. If `admit` throws, the caller gets an ordinary HTTP answer and no
   * WebSocket.
   */
  admit?: (call: Omit<Call<Context, Shape<P>, Shape<Q>, BodyOf<B>>, 'reply'>) => Promise<void>
  /**
   * The WebSocket subprotocol that the route prefers. If the caller does not offer it, the server selects the caller's first
   * subprotocol.
   */
  subprotocol?: string
}

/** A route as the server sees it, without the types of its schemas. Only `route()` makes such routes. */
export type Route<Context = unknown, Needs extends string = string> = Omit<
  RouteRow<Context, Needs, undefined, undefined, undefined>,
  'params' | 'query' | 'body' | 'run' | 'socket' | 'admit'
> & {
  params?: TObject | undefined
  query?: TObject | undefined
  body?: TSchema | undefined
  run: (call: Call<Context, unknown, unknown, unknown>) => unknown
  socket?: (socket: WebSocket, call: Omit<Call<Context, unknown, unknown, unknown>, 'reply'>) => void
  admit?: (call: Omit<Call<Context, unknown, unknown, unknown>, 'reply'>) => Promise<void>
}

/**
 * Returns the function `route()` for one program. `Context`: what the program knows about a call's caller. `Needs`: the names of
 * the program's permissions.
 */
export const routesOf =
  <Context, Needs extends string>() =>
  <
    P extends TObject | undefined = undefined,
    Q extends TObject | undefined = undefined,
    B extends TSchema | undefined = undefined,
  >(
    row: RouteRow<Context, Needs, P, Q, B>,
  ): Route<Context, Needs> =>
    // This cast is safe, because the server checks each part of a call against the route's schemas before it calls
    // `run`.
    row as unknown as Route<Context, Needs>
