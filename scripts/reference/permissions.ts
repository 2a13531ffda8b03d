import { allPermissions, type Permission, permissions } from '#src/control/auth/permissions.ts'
import { decidedInside } from '#src/control/auth/policy.ts'
import { roleNeeds } from '#src/control/auth/route.ts'
import { listEndpoints } from './list-endpoints.ts'
import { code, page, table } from './markdown.ts'

/** Whether at least one endpoint needs the permission, by its route or by a check in its code. */
const opensSomething = (permission: Permission): boolean =>
  listEndpoints().some(({ needs }) => needs === permission) ||
  Object.values(decidedInside).some((rule) => rule.includes(code(permission)))

export const permissionsPage = () => {
  const inUse = allPermissions.filter(opensSomething)
  const others = allPermissions.filter((permission) => !inUse.includes(permission))
  const rows = (some: readonly Permission[]) =>
    some.map((permission) => [
      code(permission),
      permissions[permission].replace(/^./, (first) => first.toLowerCase()).replace(/\.$/, ''),
    ])
  return page(
    'Permissions',
    'An API key allows exactly what it lists, as long as its user holds it. An owner holds everything; a member holds what their roles give.',
    table(['permission', 'allows to'], rows(inUse)),
    '## Accepted, and open nothing here',
    'Words of the interface that keys and roles may hold, and that no endpoint of this server asks for. What some of them speak of is not here; runners are the operator’s, and any member sees quotas and usage. A key that is to be as good as its user lists them too.',
    table(['permission', 'would allow to'], rows(others)),
    '## Other words of `needs`',
    table(
      ['word', 'who'],
      Object.entries(roleNeeds).map(([word, who]) => [code(word), who]),
    ),
  )
}
