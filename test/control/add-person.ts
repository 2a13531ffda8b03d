// Adds a person, with a membership and an API key, to the database of a test.
import { randomUUID } from 'node:crypto'
import { allPermissions, type Permission } from '#src/control/auth/permissions.ts'
import { hashKey, maskKey, newKey } from '#src/control/auth/secret.ts'
import type { TestControl } from './harness.ts'
import { organizations } from './people.ts'

export type AddedPerson = { id: string; email: string; key: string }

export type PersonOptions = {
  organizationId?: string
  role?: 'owner' | 'member'
  roleIds?: readonly string[]
  /** Permissions of the person's API key. Default: the permissions of an owner. */
  permissions?: readonly Permission[]
  email?: string
  emailVerified?: boolean
  /** Who verified the person's email address. Default: an operator. */
  emailVerifiedBy?: 'admin' | 'issuer' | 'sso'
}

export const addPerson = async (
  { database: { sql } }: Pick<TestControl, 'database'>,
  {
    organizationId = organizations.ours,
    role = 'member',
    roleIds = [],
    permissions = role === 'owner' ? allPermissions : [],
    email = `${randomUUID()}@example.com`,
    emailVerified = true,
    emailVerifiedBy = 'admin',
  }: PersonOptions = {},
): Promise<AddedPerson> => {
  const [user] = await sql<[{ id: string }]>`
    insert into users (name, email, email_verified, email_verified_by)
    values ('Somebody', ${email}, ${emailVerified}, ${emailVerifiedBy}) returning id`
  await sql`insert into members (organization_id, user_id, role) values (${organizationId}, ${user.id}, ${role})`
  for (const roleId of roleIds) await sql`insert into member_roles values (${organizationId}, ${user.id}, ${roleId})`
  const key = newKey()
  await sql`insert into api_keys (organization_id, user_id, name, hash, masked_value, permissions)
            values (${organizationId}, ${user.id}, 'key', ${hashKey(key)}, ${maskKey(key)}, ${[...permissions]})`
  return { id: user.id, email, key }
}
