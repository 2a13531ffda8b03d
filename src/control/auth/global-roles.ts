// The roles that every organization has. Clients know their ids, so the ids never change. Migrations insert the roles.
import type { Permission } from './permissions.ts'

type GlobalRole = { id: string; name: string; permissions: readonly Permission[] }

const idOf = (number: number) => `00000000-0000-0000-0000-${String(number).padStart(12, '0')}`

export const globalRoles = [
  { id: idOf(1), name: 'Developer', permissions: ['write:sandboxes'] },
  { id: idOf(2), name: 'Sandboxes Admin', permissions: ['write:sandboxes', 'delete:sandboxes'] },
  { id: idOf(3), name: 'Snapshots Admin', permissions: ['write:snapshots', 'delete:snapshots'] },
  { id: idOf(4), name: 'Registries Admin', permissions: ['write:registries', 'delete:registries'] },
  {
    id: idOf(5),
    name: 'Super Admin',
    permissions: [
      ...(['write:registries', 'delete:registries', 'write:snapshots', 'delete:snapshots'] as const),
      ...(['write:sandboxes', 'delete:sandboxes', 'read:volumes', 'write:volumes', 'delete:volumes'] as const),
      ...(['write:regions', 'delete:regions', 'read:runners', 'write:runners', 'delete:runners'] as const),
      ...(['read:audit_logs', 'manage:secrets', 'read:limits', 'manage:sso'] as const),
    ],
  },
  { id: idOf(6), name: 'Volumes Admin', permissions: ['read:volumes', 'write:volumes', 'delete:volumes'] },
  { id: idOf(7), name: 'Auditor', permissions: ['read:audit_logs'] },
  {
    id: idOf(8),
    name: 'Infrastructure Admin',
    permissions: ['write:regions', 'delete:regions', 'read:runners', 'write:runners', 'delete:runners'],
  },
  { id: idOf(9), name: 'SSO Admin', permissions: ['manage:sso'] },
] as const satisfies GlobalRole[]
