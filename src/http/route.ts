// A route is a row: method, path, what it needs, its shapes and what it runs. It knows no noun.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Static, TObject, TSchema } from 'typebox'
import type { WebSocket } from 'ws'

type Shape<S> = S extends TSchema ? Static<S> : Record<string, never>
type BodyOf<S> = S extends TSchema ? Static<S> : undefined

export type Call<Context, Params, Query, Body> = Context & {
  params: Params
  query: Query
  body: Body
  request: FastifyRequest
  reply: FastifyReply
}

/** A row whose shapes are known to `run`; `route()` makes one, and the server reads it as the wider {@link Route}. */
export type RouteRow<Context, Needs extends string, P, Q, B> = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Fastify's form: `/sandbox/:sandboxIdOrName/stop`. */
  path: string
  /** Who may call it. Always written, `'public'` included. */
  needs: Needs
  /** It gives somebody a way in, or more rights, for longer than a credential that expires: such a credential is refused. */
  givesAccess?: boolean
  /** A line for the reference page. */
  summary: string
  params?: P
  query?: Q
  body?: B
  /** The body may be absent, or null; `run` then sees `undefined`. */
  bodyOptional?: boolean
  /** In bytes; the server's own limit when absent. */
  bodyLimit?: number
  /** The body is left as it is, of any type and length: `run` reads `request.raw`, without destroying it. Not with `body`. */
  streamsBody?: boolean
  /** The shape per success status; the first is the one a plain return is sent with. `null`: an empty body. */
  replies: Record<number, TSchema | null>
  run: (call: Call<Context, Shape<P>, Shape<Q>, BodyOf<B>>) => unknown
  /** For a GET that may be upgraded to a WebSocket: runs instead of `run`, after the same guard and validation. */
  socket?: (socket: WebSocket, call: Omit<Call<Context, Shape<P>, Shape<Q>, BodyOf<B>>, 'reply'>) => void
  /** For a `socket`: checks that need a question. Runs before the upgrade; what it throws is answered as plain HTTP. */
  admit?: (call: Omit<Call<Context, Shape<P>, Shape<Q>, BodyOf<B>>, 'reply'>) => Promise<void>
  /** For a `socket`: selected before others when a caller offers it. Without it the first that is offered is selected. */
  subprotocol?: string
}

/** A row as the server sees it: shapes of every kind alike. Only `route()` makes one. */
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

/** Binds `route()` to one program's context and its words for `needs`. */
export const routesOf =
  <Context, Needs extends string>() =>
  <
    P extends TObject | undefined = undefined,
    Q extends TObject | undefined = undefined,
    B extends TSchema | undefined = undefined,
  >(
    row: RouteRow<Context, Needs, P, Q, B>,
  ): Route<Context, Needs> =>
    // The server validates each part by the row's own schemas before it calls `run`.
    row as unknown as Route<Context, Needs>
