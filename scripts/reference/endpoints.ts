import { listEndpoints } from './list-endpoints.ts'
import { code, page, table } from './markdown.ts'
import { braced, describe, statusesOf } from './routes.ts'

export const endpointsPage = () => {
  const routes = listEndpoints()
  return page(
    'Endpoints of control',
    'All paths are below `{base_url}`, which ends in `/api`. A field with \\* is required. [Permissions](permissions.md) explains each word of the column `needs`. [Errors](errors.md) lists the errors that calls can return.',
    table(
      ['method', 'path', 'needs', 'what it does'],
      routes.map((route) => [route.method, code(braced(route.path)), code(route.needs), route.summary]),
    ),
    ...routes.map((route) => describe(route, `Needs ${code(route.needs)}. Answers ${statusesOf(route)}.`)),
  )
}
