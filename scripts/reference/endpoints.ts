import { listEndpoints } from './list-endpoints.ts'
import { code, page, table } from './markdown.ts'
import { braced, describe, statusesOf } from './routes.ts'

export const endpointsPage = () => {
  const routes = listEndpoints()
  return page(
    'Endpoints of control',
    'All are below `{base_url}`, which ends in `/api`. A field with \\* must be there. What a word of `needs` means is in [permissions](permissions.md), what can go wrong in [errors](errors.md).',
    table(
      ['method', 'path', 'needs', 'what it does'],
      routes.map((route) => [route.method, code(braced(route.path)), code(route.needs), route.summary]),
    ),
    ...routes.map((route) => describe(route, `Needs ${code(route.needs)}. Answers ${statusesOf(route)}.`)),
  )
}
