// Calls of Daytona's public API that a server does not serve. They answer 404 with the reason, so that callers do not doubt
// the URL.
import type { FastifyInstance } from 'fastify'
import { Problem } from '#src/problems.ts'
import type { Route } from './route.ts'

/** For each unserved call, such as `GET /secret/{}`, the reason why it is not served. */
export type Unserved = Readonly<Record<string, string>>

/** Returns a method and a path as one text. Each parameter is `{}`, so that its name does not matter. */
export const asCall = (method: string, path: string): string => `${method} ${path.replaceAll(/:\w+|\{[^}]+\}/g, '{}')}`

/** Makes the server answer each call in `unserved` with the reason, unless `routes` contains the call. */
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
        // Refuse the call in this hook, which runs before the body is read: the answer is then the same for every body.
        onRequest: async ({ method: asked, url }) => {
          throw new Problem('not_found', `Alcove does not serve ${asked} ${url.split('?')[0]}. ${why}`)
        },
        handler: () => {},
      })
  }
}
