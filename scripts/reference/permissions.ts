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
    'An API key has the permissions that it lists, as long as its user has them too. An owner of the organization has all permissions. A member has the permissions of their roles.',
    table(['permission', 'allows its holder to'], rows(inUse)),
    '## Permissions that no endpoint needs',
    'API keys and roles can have these permissions of the public API, but no endpoint of this server checks them. This server has no billing, only its operator manages runners, and every member can see quotas and usage. An API key has all rights of its user only if it lists every permission of the user, including these.',
    table(['permission', 'would allow its holder to'], rows(others)),
    '## Other values of `needs`',
    table(
      ['value', 'who may call the endpoint'],
      Object.entries(roleNeeds).map(([word, who]) => [code(word), who]),
    ),
  )
}
