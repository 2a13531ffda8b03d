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
    'Every endpoint of control and every kind of caller. `src/control/auth/policy.test.ts` asks a real server all of it, each role and each key by itself.',
    [
      '- **yes**: let in. What the path names in another organization than the caller’s is 404, as if it did not exist.',
      '- **own**: let in, but only to their own organization; what belongs to this one is 404.',
      '- **401**, **403**, **404**: refused, before the body is read.',
      '- *stranger*: owner of another organization. *member*: without any role. *owner*: signed in, or by a key that lists every permission. *operator*: signed in, an owner of any organization that they name; *by key*, of the key’s own only.',
      '- *roles*: members with just this role. *keys*: keys of an owner that list just this permission. A key without any permission opens what is open to any key.',
    ].join('\n'),
    table(['endpoint', ...single, 'roles', 'keys'], routes.map(row)),
    '## Decided inside',
    'What depends on more than the caller and the endpoint, besides states and quotas.',
    table(['endpoint', 'rule'], inside),
    '## Other doors',
    'Not part of the interface’s table, and served by control all the same.',
    table(
      ['below', 'who decides'],
      Object.entries(otherDoors).map(([start, who]) => [code(start), who]),
    ),
    '## Global roles',
    table(
      ['role', 'id', 'permissions'],
      globalRoles.map(({ name, id, permissions: held }) => [name, code(id), held.map(code).join(', ')]),
    ),
  )
}
