import { globalRoles } from '#src/control/auth/global-roles.ts'
import { allPermissions } from '#src/control/auth/permissions.ts'
import { answerTo, decidedInside, type GridCaller, otherDoors } from '#src/control/auth/policy.ts'
import type { ControlRoute } from '#src/control/auth/route.ts'
import { listEndpoints } from './list-endpoints.ts'
import { code, page, table } from './markdown.ts'
import { braced } from './routes.ts'

const isLetIn = (route: ControlRoute, caller: GridCaller) => ['yes', 'own'].includes(answerTo(route, caller))

/** Returns the names of the callers in `many` who may call the route: `all` for all of them, "none" for nobody. */
const openTo = <Caller extends GridCaller>(route: ControlRoute, many: readonly Caller[], all: string): string => {
  const some = many.filter((caller) => isLetIn(route, caller))
  return some.length === many.length ? all : some.length === 0 ? 'none' : some.join(', ')
}

export const policyPage = () => {
  const routes = listEndpoints()
  const single = [
    'nobody',
    'stranger',
    'member',
    'owner',
    'operator',
    'operator by key',
    'proxy',
    'runner',
    'collector',
    'ssh-gateway',
  ] as const
  const pathOf = ({ method, path }: ControlRoute) => `${method} ${braced(path)}`
  const row = (route: ControlRoute) => [
    code(pathOf(route)),
    ...single.map((caller) => answerTo(route, caller)),
    openTo(
      route,
      globalRoles.map(({ name }) => name),
      'all',
    ),
    openTo(route, allPermissions, 'any'),
  ]
  const inside = routes.flatMap((route) => {
    const rule = decidedInside[`${route.method} ${route.path}`]
    return rule === undefined ? [] : [[code(pathOf(route)), rule]]
  })
  return page(
    'Who may do what',
    'The table says for every endpoint of control which kinds of callers may call it. `src/control/auth/policy.test.ts` checks every cell on a real server, separately for each role and each key.',
    [
      '- **yes**: may call the endpoint. If the path names an object of another organization than the caller’s, the answer is 404, as if the object did not exist.',
      '- **own**: may call the endpoint only for objects of the caller’s own organization. For objects of any other organization, the answer is 404.',
      '- **401**, **403**, **404**: the call is refused with this status before its body is read.',
      '- *stranger*: an owner of another organization.',
      '- *member*: a member of the organization without any role.',
      '- *owner*: an owner of the organization, signed in or with an API key that lists every permission.',
      '- *operator*: an operator who is signed in. They have the rights of an owner in every organization that a request names.',
      '- *operator by key*: an operator with an API key. They have the rights of an owner only in the organization of the key.',
      '- *roles*: the roles that may call the endpoint. Each was tested with a member who has only this role.',
      '- *keys*: the permissions whose API keys may call the endpoint. Each was tested with a key of an owner that lists only this permission. *any*: a key without any permission may call it too.',
    ].join('\n'),
    table(['endpoint', ...single, 'roles', 'keys'], routes.map(row)),
    '## Checks after the table',
    'For these endpoints, access depends on more than the caller and the endpoint. The handler of the endpoint checks these rules. Checks of states and quotas are not listed.',
    table(['endpoint', 'rule'], inside),
    '## Paths outside the API',
    'Control also serves these paths, which are not endpoints of the API.',
    table(
      ['path, and (except for `/`) all paths below', 'who has access'],
      Object.entries(otherDoors).map(([start, who]) => [code(start), who]),
    ),
    '## Global roles',
    table(
      ['role', 'id', 'permissions'],
      globalRoles.map(({ name, id, permissions: held }) => [name, code(id), held.map(code).join(', ')]),
    ),
  )
}
