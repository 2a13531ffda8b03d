// The permissions that an API key or a role can have, with their descriptions. The names are part of the API and never change.
export const permissions = {
  'write:registries': 'Add and change registries.',
  'delete:registries': 'Remove registries.',
  'write:snapshots': 'Create and change snapshots.',
  'delete:snapshots': 'Delete snapshots.',
  'write:sandboxes': 'Create, start, stop and change sandboxes.',
  'delete:sandboxes': 'Delete sandboxes.',
  'read:volumes': 'See volumes.',
  'write:volumes': 'Create and change volumes.',
  'delete:volumes': 'Delete volumes.',
  'write:regions': 'Create and change regions.',
  'delete:regions': 'Delete regions.',
  'read:runners': 'See runners.',
  'write:runners': 'Add and change runners.',
  'delete:runners': 'Remove runners.',
  'read:audit_logs': 'Read the audit log.',
  'manage:api_keys': 'Create and delete API keys with an API key, and delete API keys of other users.',
  'manage:secrets': 'Create, change and delete secrets.',
  'read:limits': 'See quotas and usage.',
  'manage:sso': 'Manage identity providers.',
  'read:billing': 'See billing.',
  'manage:billing': 'Change billing.',
} as const satisfies Record<string, string>

export type Permission = keyof typeof permissions

export const allPermissions = Object.keys(permissions) as Permission[]

export const isPermission = (word: string): word is Permission => Object.hasOwn(permissions, word)
