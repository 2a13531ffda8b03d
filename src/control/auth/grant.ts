// Checks that a caller has every permission that the caller gives to an API key or to new members, or gives up by leaving.
import { Problem } from '#src/problems.ts'
import { allPermissions, type Permission } from './permissions.ts'
import type { Caller } from './route.ts'

/** Returns the permissions that a member has through roles. An owner has every permission, even without roles. */
export const heldThrough = (
  role: 'owner' | 'member',
  roles: readonly { permissions: readonly Permission[] }[],
): Permission[] => (role === 'owner' ? allPermissions : [...new Set(roles.flatMap(({ permissions }) => permissions))])

export const checkHoldsAll = ({ permissions }: Pick<Caller, 'permissions'>, wanted: readonly Permission[]): void => {
  const missing = wanted.find((permission) => !permissions.has(permission))
  if (missing !== undefined) throw new Problem('forbidden', `You do not hold the permission ${missing} yourself.`)
}
