// A route is a row: method, path, required permission, schemas and handler. This file knows nothing about sandboxes or
// other resources.
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

/**
 * A route whose `run` has the types of the route's schemas. `route()` makes it. The server reads it as the wider {@link
 * Route}.
 */
export type RouteRow<Context, Needs extends string, P, Q, B> = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The path of the route in Fastify's form: `/sandbox/:sandboxIdOrName/stop`. */
  path: string
  /** Who may call the route. Required, so that `'public'` is always a decision. */
  needs: Needs
  /**
   * True if the route grants access or rights that outlive the caller's credential. Such a route refuses a credential
   * that expires.
   */
  givesAccess?: boolean
  /** The text about the route on the reference page. */
  summary: string
  params?: P
  query?: Q
  body?: B
  /** True if the body may be absent or null; `run` then sees `undefined`. */
  bodyOptional?: boolean
  /** Largest body in bytes. Default: the server's limit. */
  bodyLimit?: number
  /**
   * True if `run` reads `request.raw` itself, without destroying it, and the server does not read the body. Cannot be
   * used with `body`.
   */
  streamsBody?: boolean
  /** Schema per success status. A value that `run` returns is sent with the first status. `null`: an empty body. */
  replies: Record<number, TSchema | null>
  run: (call: Call<Context, Shape<P>, Shape<Q>, BodyOf<B>>) => unknown
  /** Runs instead of `run` if a GET is upgraded to a WebSocket, after the same guard and validation. */
  socket?: (socket: WebSocket, call: Omit<Call<Context, Shape<P>, Shape<Q>, BodyOf<B>>, 'reply'>) => void
  /**
   * Asynchronous checks before the upgrade to `socket`. An error that `admit` throws is sent as a plain HTTP answer.
   */
  admit?: (call: Omit<Call<Context, Shape<P>, Shape<Q>, BodyOf<B>>, 'reply'>) => Promise<void>
  /**
   * The subprotocol of `socket` that is selected if the caller offers it. Otherwise the first offered one is selected.
   */
  subprotocol?: string
}

/** A route as the server sees it, without the types of its schemas. Only `route()` makes one. */
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

/** Returns a `route()` function for one program: for its context type and its allowed values of `needs`. */
export const routesOf =
  <Context, Needs extends string>() =>
  <
    P extends TObject | undefined = undefined,
    Q extends TObject | undefined = undefined,
    B extends TSchema | undefined = undefined,
  >(
    row: RouteRow<Context, Needs, P, Q, B>,
  ): Route<Context, Needs> =>
    // The cast is safe: the server validates each part by the route's own schemas before it calls `run`.
    row as unknown as Route<Context, Needs>
