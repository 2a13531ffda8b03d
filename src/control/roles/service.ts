// Roles are named sets of permissions for members. Nobody can change the global roles. Only owners can change the roles of
// their organization, and only with a credential that has every permission. The guard checks this credential. So nobody can
// give a role permissions that they lack.

import { type ChangeParts, changeAsOwner } from '#src/control/auth/change-membership.ts'
import { Problem } from '#src/problems.ts'
import { cutBackKeys } from '../api-keys/cut-back.ts'
import type { Caller } from '../auth/route.ts'
import { readDisplayText } from '../display-text.ts'
import { isDuplicate, type Sql } from '../storage/database.ts'
import { asRoleView, type Role } from './role.ts'
import type { RoleText } from './schemas.ts'
import {
  countOwnRoles,
  deleteRole as deleteRow,
  findRole,
  findRoles,
  insertRole,
  isGlobalName,
  listRoles as listRows,
  type RoleValues,
  replaceRole,
} from './store.ts'

/** The id of the role Developer, which members have by default. */
export const developerRoleId = '00000000-0000-0000-0000-000000000001'

const rolesPerOrganization = 200

export type AsOwner = { caller: Caller; organizationId: string }

const readValues = ({ name, description, permissions }: RoleText): RoleValues => ({
  name: readDisplayText('name', name),
  description: readDisplayText('description', description),
  permissions: [...new Set(permissions)],
})

const sayTaken = (name: string, cause?: unknown) =>
  new Problem('already_exists', `A role named ${name} already exists.`, { cause })

/** Calls `write`, which stores a role. Throws 409 if another role has the same name. */
const named = async (sql: Sql, { name }: RoleValues, write: () => Promise<Role>): Promise<Role> => {
  if (await isGlobalName(sql, name)) throw sayTaken(name)
  try {
    return await write()
  } catch (error) {
    throw isDuplicate(error) ? sayTaken(name, error) : error
  }
}

const getOwnRole = async (sql: Sql, organizationId: string, roleId: string): Promise<Role> => {
  const role = await findRole(sql, organizationId, roleId)
  if (role === undefined) throw new Problem('not_found', 'There is no such role.')
  if (role.organizationId === null) {
    throw new Problem('forbidden', 'A global role belongs to every organization and cannot be changed or deleted.')
  }
  return role
}

export const createRole = async (parts: ChangeParts, as: AsOwner, input: RoleText) => {
  const values = readValues(input)
  const role = await changeAsOwner(parts, as, async (sql) => {
    if ((await countOwnRoles(sql, as.organizationId)) >= rolesPerOrganization) {
      throw new Problem('forbidden', `An organization can have at most ${rolesPerOrganization} roles of its own.`)
    }
    return await named(sql, values, () => insertRole(sql, as.organizationId, values, parts.clock.now()))
  })
  return asRoleView(role)
}

export const listRoles = async ({ database }: ChangeParts, organizationId: string) =>
  (await listRows(database.sql, organizationId)).map(asRoleView)

/**
 * Replaces the name, description and permissions of a role. Members with this role gain and lose permissions immediately. The
 * keys of these members only lose permissions.
 */
export const updateRole = async (parts: ChangeParts, as: AsOwner, roleId: string, input: RoleText) => {
  const values = readValues(input)
  const role = await changeAsOwner(parts, as, async (sql) => {
    await getOwnRole(sql, as.organizationId, roleId)
    const after = await named(sql, values, () => replaceRole(sql, roleId, values, parts.clock.now()))
    await cutBackKeys(sql, as.organizationId)
    return after
  })
  return asRoleView(role)
}

export const deleteRole = async (parts: ChangeParts, as: AsOwner, roleId: string): Promise<void> => {
  await changeAsOwner(parts, as, async (sql) => {
    await getOwnRole(sql, as.organizationId, roleId)
    await deleteRow(sql, roleId)
    await cutBackKeys(sql, as.organizationId)
  })
}

/** Reads the roles with these ids. Throws 400 if an id is neither a role of the organization nor a global role. */
export const getAssignableRoles = async (sql: Sql, organizationId: string, ids: readonly string[]): Promise<Role[]> => {
  const wanted = [...new Set(ids)]
  const roles = await findRoles(sql, organizationId, wanted)
  if (roles.length < wanted.length) throw new Problem('bad_request', 'assignedRoleIds names a role that is not there')
  return roles
}
