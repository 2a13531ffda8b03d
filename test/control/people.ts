// The people in every test database. `ours` has an owner, a member and a viewer. `theirs` has an owner who is called the stranger.
// Ids and keys are words, which are easy to read in the output of a failing test.
import { createHash } from 'node:crypto'
import { allPermissions, type Permission } from '#src/control/auth/permissions.ts'
import { hashKey, maskKey } from '#src/control/auth/secret.ts'
import { localRegionId } from '#src/control/bootstrap.ts'
import type { Sql } from '#src/control/storage/database.ts'

const keyOf = (name: string) => `dtn_${createHash('sha256').update(`test key of ${name}`).digest('hex')}`

export const keys = {
  /** The system administrator, who has a personal organization. */
  admin: keyOf('admin'),
  /** The owner of the organization `ours`, with every permission. */
  owner: keyOf('owner'),
  /** A member of the organization `ours` with the role Developer, which permits writing sandboxes but not deleting them. */
  member: keyOf('member'),
  /** A member of the organization `ours`, without any role or permission. */
  viewer: keyOf('viewer'),
  /** The owner of the organization `theirs`, with every permission in it. */
  stranger: keyOf('stranger'),
  proxy: keyOf('proxy'),
  runner: keyOf('runner'),
  collector: keyOf('collector'),
  'ssh-gateway': keyOf('ssh-gateway'),
} as const

export type Who = keyof typeof keys | 'nobody'

export const organizations = { ours: 'organization-ours', theirs: 'organization-theirs' } as const

const developer = '00000000-0000-0000-0000-000000000001'

type Resident = {
  name: 'owner' | 'member' | 'viewer' | 'stranger'
  organizationId: string
  role: 'owner' | 'member'
  roleIds: string[]
  permissions: Permission[]
}

const people: Resident[] = [
  { name: 'owner', organizationId: organizations.ours, role: 'owner', roleIds: [], permissions: allPermissions },
  {
    name: 'member',
    organizationId: organizations.ours,
    role: 'member',
    roleIds: [developer],
    permissions: ['write:sandboxes'],
  },
  { name: 'viewer', organizationId: organizations.ours, role: 'member', roleIds: [], permissions: [] },
  { name: 'stranger', organizationId: organizations.theirs, role: 'owner', roleIds: [], permissions: allPermissions },
]

/** The names of the people who can sign in with a token of an issuer. */
export type Person = Resident['name'] | 'admin'

/**
 * Returns the organization that control assumes if a call of this person names no organization. Null: the administrator's personal
 * organization.
 */
export const homeOf = (who: Person): string | null => people.find(({ name }) => name === who)?.organizationId ?? null

/** Makes control accept tokens of `issuer` with the subject `who`. These tokens sign in the person `who` of this file. */
export const recogniseAt = async (sql: Sql, issuer: string, who: Person): Promise<void> => {
  const email = who === 'admin' ? 'admin@localhost' : `${who}@example.com`
  await sql`
    insert into user_identities (issuer, subject, user_id, email, email_verified, name, said_at, is_source)
    select ${issuer}, ${who}, id, email, true, name, now(), false from users where email = ${email}
    on conflict do nothing`
}

export const userId = (name: Resident['name']) => `user-${name}`

export const settle = async (sql: Sql): Promise<void> => {
  for (const { name } of people) {
    await sql`insert into users (id, name, email, email_verified, email_verified_by)
              values (${userId(name)}, ${name}, ${`${name}@example.com`}, true, 'admin')`
  }
  for (const [name, id] of Object.entries(organizations)) {
    const creator = userId(name === 'ours' ? 'owner' : 'stranger')
    await sql`insert into organizations (id, name, created_by, default_region_id)
              values (${id}, ${name}, ${creator}, ${localRegionId})`
  }
  for (const { name, organizationId, role, roleIds, permissions } of people) {
    await sql`insert into members (organization_id, user_id, role) values (${organizationId}, ${userId(name)}, ${role})`
    for (const roleId of roleIds) {
      await sql`insert into member_roles values (${organizationId}, ${userId(name)}, ${roleId})`
    }
    const key = keys[name]
    await sql`insert into api_keys (organization_id, user_id, name, hash, masked_value, permissions)
              values (${organizationId}, ${userId(name)}, ${name}, ${hashKey(key)}, ${maskKey(key)}, ${permissions})`
  }
}
