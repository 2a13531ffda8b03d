// The permissions that an API key or a role can have, in groups, with a sentence for each.
import type { BodyOf } from '../api/client.ts'

export type Permission = BodyOf<'/api-keys', 'post'>['permissions'][number]

type Group = { name: string; hint?: string; permissions: Partial<Record<Permission, string>> }

export const permissionGroups = [
  {
    name: 'Sandboxes',
    permissions: {
      'write:sandboxes': 'Create, use, start, stop and change sandboxes',
      'delete:sandboxes': 'Delete sandboxes',
    },
  },
  {
    name: 'Snapshots and images',
    permissions: {
      'write:snapshots': 'Make and change snapshots and warm pools',
      'delete:snapshots': 'Delete snapshots and warm pools',
      'write:registries': 'Add and change registries',
      'delete:registries': 'Remove registries',
    },
  },
  {
    name: 'Volumes and secrets',
    permissions: {
      'read:volumes': 'See volumes',
      'write:volumes': 'Make and change volumes',
      'delete:volumes': 'Delete volumes',
      'manage:secrets': 'Make, change and delete secrets',
    },
  },
  {
    name: 'Organization',
    permissions: {
      'manage:api_keys': 'Make keys with another key, and delete keys of others',
      'read:audit_logs': 'Read the audit log',
      'manage:sso': 'Manage identity providers',
      'write:regions': 'Make and change regions',
      'delete:regions': 'Delete regions',
    },
  },
  {
    name: 'Without effect here',
    hint: 'Programs for other servers may ask for these permissions. On this server, the permissions allow nothing.',
    permissions: {
      'read:runners': 'See runners',
      'write:runners': 'Add and change runners',
      'delete:runners': 'Remove runners',
      'read:limits': 'See quotas and usage',
      'read:billing': 'See billing',
      'manage:billing': 'Change billing',
    },
  },
] as const satisfies readonly Group[]

export const allPermissions = permissionGroups.flatMap(({ permissions }) => Object.keys(permissions)) as Permission[]

const sentences: Partial<Record<Permission, string>> = Object.assign(
  {},
  ...permissionGroups.map(({ permissions }) => permissions),
)

/** A sentence that says what a permission allows. */
export const sentenceOf = (permission: Permission): string => sentences[permission] ?? permission

/** The permissions that a program needs to work with sandboxes, snapshots and volumes, and no others. */
export const workPermissions: readonly Permission[] = [
  ...(['write:sandboxes', 'delete:sandboxes', 'write:snapshots', 'delete:snapshots'] as const),
  ...(['read:volumes', 'write:volumes', 'delete:volumes'] as const),
]

/** A short text for a list of permissions: “All”, “None”, or their number. */
export const summaryOf = (permissions: readonly Permission[]): string => {
  const count = new Set(permissions).size
  if (count === 0) return 'None'
  return count === allPermissions.length ? 'All' : `${count} of ${allPermissions.length}`
}
