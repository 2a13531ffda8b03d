// Pure functions that say which caller may call which endpoint. The guard and docs/reference/policy.md use them.
import { globalRoles } from './global-roles.ts'
import { allPermissions, type Permission } from './permissions.ts'
import type { Caller, ControlRoute, Needs } from './route.ts'

type Standing = Pick<Caller, 'memberRole' | 'permissions'> & { user: Pick<Caller['user'], 'systemRole'> }

/**
 * Whether the credential has every permission. Owners and operators can use their rights only with such a credential.
 */
const isWhole = ({ permissions }: Standing): boolean =>
  allPermissions.every((permission) => permissions.has(permission))

/** Whether a caller may call a route with these `needs` in the caller's organization. */
export const holds = (needs: Needs, caller: Standing): boolean => {
  switch (needs) {
    case 'public':
    case 'user':
    case 'member':
    case 'member or ssh-gateway':
      return true
    case 'owner':
    case 'owner or collector':
      return caller.memberRole === 'owner' && isWhole(caller)
    case 'admin':
      return caller.user.systemRole === 'admin' && isWhole(caller)
    case 'proxy':
    case 'runner':
    case 'collector':
      return false
    default:
      return caller.permissions.has(needs)
  }
}

/** A kind of caller: a column in docs/reference/policy.md. `here`: the user belongs to the organization in the path. */
type Column =
  | { kind: 'nobody' | 'proxy' | 'runner' | 'collector' | 'ssh-gateway' }
  | ({ kind: 'here' } & Standing)
  /** The user belongs to another organization than the one that the path names. */
  | ({ kind: 'elsewhere' } & Standing)

/** `yes`: admitted. `own`: admitted only to objects of the caller's own organization. A number: refused with this status. */
export type Answer = 'yes' | 'own' | '401' | '403' | '404'

const standing = (
  permissions: readonly Permission[],
  memberRole: Caller['memberRole'] = 'member',
  systemRole: 'admin' | 'user' = 'user',
): Standing => ({ permissions: new Set(permissions), memberRole, user: { systemRole } })

const columnsOf = <Name extends string>(entries: readonly (readonly [Name, Column])[]) =>
  Object.fromEntries(entries) as Record<Name, Column>

/** The kinds of callers in docs/reference/policy.md. policy.test.ts calls every endpoint as each kind of caller. */
export const callers = {
  nobody: { kind: 'nobody' },
  stranger: { kind: 'elsewhere', ...standing(allPermissions, 'owner') },
  member: { kind: 'here', ...standing([]) },
  ...columnsOf(globalRoles.map(({ name, permissions }) => [name, { kind: 'here', ...standing(permissions) }])),
  owner: { kind: 'here', ...standing(allPermissions, 'owner') },
  ...columnsOf(allPermissions.map((permission) => [permission, { kind: 'here', ...standing([permission], 'owner') }])),
  /**
   * A signed-in operator has the rights of an owner in every organization. The key of an operator belongs to one
   * organization.
   */
  operator: { kind: 'here', ...standing(allPermissions, 'owner', 'admin') },
  'operator by key': { kind: 'elsewhere', ...standing(allPermissions, 'owner', 'admin') },
  proxy: { kind: 'proxy' },
  runner: { kind: 'runner' },
  collector: { kind: 'collector' },
  'ssh-gateway': { kind: 'ssh-gateway' },
} as const satisfies Record<string, Column>

export type GridCaller = keyof typeof callers

export const answerTo = ({ needs, path }: Pick<ControlRoute, 'needs' | 'path'>, name: GridCaller): Answer => {
  const caller: Column = callers[name]
  if (needs === 'public') return 'yes'
  if (!('permissions' in caller)) return needs.split(' or ').includes(caller.kind) ? 'yes' : '401'
  if (needs === 'proxy' || needs === 'runner' || needs === 'collector') return '403'
  if (needs === 'admin') return holds(needs, caller) ? 'yes' : '403'
  if (caller.kind === 'elsewhere' && path.includes(':organizationId')) return '404'
  if (!holds(needs, caller)) return '403'
  return needs === 'user' || caller.kind === 'here' ? 'yes' : 'own'
}

const keyNeedsAll = 'An API key must list every permission that its user has in the organization of the key.'

/**
 * Endpoints whose handler also checks access, after the guard. These checks need more than the guard knows, for example
 * who owns an object.
 */
export const decidedInside: Record<string, string> = {
  'GET /object-storage/push-access': 'The caller needs `write:snapshots` or `write:sandboxes`.',
  'GET /organizations':
    'An API key sees only its own organization. A signed-in user sees all organizations of the user.',
  'POST /organizations': keyNeedsAll,
  'POST /organizations/invitations/:invitationId/accept': keyNeedsAll,
  'POST /organizations/invitations/:invitationId/decline': keyNeedsAll,
  'POST /users/me/pending-sso-links/:id/confirm': keyNeedsAll,
  'DELETE /users/me/pending-sso-links/:id': keyNeedsAll,
  'GET /api-keys': 'An owner sees the API keys of all members. A member sees only their own.',
  'GET /api-keys/current': 'Only with an API key. A signed-in user gets 401.',
  'POST /api-keys': 'An API key needs `manage:api_keys`. Nobody can give a permission that they do not have.',
  'DELETE /api-keys/:name': 'An API key may delete itself. To delete another key, it needs `manage:api_keys`.',
  'DELETE /api-keys/:userId/:name':
    'An API key may delete itself, and a signed-in user their own keys. To delete other keys, the caller needs `manage:api_keys`.',
  'POST /users/linked-accounts':
    'Only a signed-in user. With an API key, somebody could give another person access to the account.',
  'DELETE /users/linked-accounts/:provider/:providerUserId': 'Only a signed-in user.',
}

/** Paths of the server that are not in endpoints.ts. Key: the beginning of the path. Value: who has access. */
export const otherDoors: Record<string, string> = {
  '/': 'Anybody. Browsers are redirected to the dashboard.',
  '/dashboard': 'Anybody. The pages contain no credential. They call the endpoints with the credential of their user.',
  '/socket.io':
    'Anybody whose handshake has a token that is a valid credential. The connection gets only the events of the credential’s organization.',
  '/webhooks/portal':
    'Anybody with a session that a link from `app-portal-access` has opened. The session gives access only to the webhooks of its organization.',
}
