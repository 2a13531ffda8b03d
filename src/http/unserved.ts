// Calls of the public API that a server does not serve. They answer 404 with the reason, so that nobody takes them for a wrong URL.
import type { FastifyInstance } from 'fastify'
import { Problem } from '#src/problems.ts'
import type { Route } from './route.ts'

/** The reason of each call, such as `GET /secret/{}`. */
export type Unserved = Readonly<Record<string, string>>

/**
 * Returns a method and a path as one text, with every parameter as `{}`. Two descriptions may name their parameters
 * differently.
 */
export const asCall = (method: string, path: string): string => `${method} ${path.replaceAll(/:\w+|\{[^}]+\}/g, '{}')}`

/** Makes the server answer each unserved call with its reason. A call that has a route is left to the route. */
export const refuseUnserved = (
  server: FastifyInstance,
  unserved: Unserved,
  { routes, prefixes }: { routes: readonly Pick<Route, 'method' | 'path'>[]; prefixes: readonly string[] },
): void => {
  const served = new Set(routes.map(({ method, path }) => asCall(method, path)))
  for (const [call, why] of Object.entries(unserved)) {
    if (served.has(call)) continue
    const [method = '', path = ''] = call.split(' ')
    let parameters = 0
    const pattern = path.replaceAll('{}', () => `:unserved${parameters++}`)
    for (const prefix of prefixes)
      server.route({
        method,
        url: `${prefix}${pattern}`,
        // The hook comes before the body is read, so the reason is the answer to any body.
        onRequest: async ({ method: asked, url }) => {
          throw new Problem('not_found', `Alcove does not serve ${asked} ${url.split('?')[0]}. ${why}`)
        },
        handler: () => {},
      })
  }
}
