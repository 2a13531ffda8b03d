// The SQL of roles. An organization sees its own roles and the global roles.
import type { Sql } from '../storage/database.ts'
import { type Role, type RoleRow, readRole } from './role.ts'

export type RoleValues = Pick<Role, 'name' | 'description' | 'permissions'>

export const insertRole = async (
  sql: Sql,
  organizationId: string,
  { name, description, permissions }: RoleValues,
  now: Date,
): Promise<Role> => {
  const [row] = await sql<[RoleRow]>`
    insert into roles (organization_id, name, description, permissions, created_at, updated_at)
    values (${organizationId}, ${name}, ${description}, ${permissions}, ${now}, ${now})
    returning *`
  return readRole(row)
}

/** Lists an organization's roles, the global roles first. The number of roles has a limit, so no pages are needed. */
export const listRoles = async (sql: Sql, organizationId: string): Promise<Role[]> => {
  const rows = await sql<RoleRow[]>`
    select * from roles where organization_id = ${organizationId} or organization_id is null
    order by organization_id nulls first, case when organization_id is null then id end, created_at, id`
  return rows.map(readRole)
}

export const findRole = async (sql: Sql, organizationId: string, id: string): Promise<Role | undefined> => {
  const [row] = await sql<RoleRow[]>`
    select * from roles where id = ${id} and (organization_id = ${organizationId} or organization_id is null)`
  return row && readRole(row)
}

/** Finds the roles with these ids among the organization's own roles and the global roles. */
export const findRoles = async (sql: Sql, organizationId: string, ids: readonly string[]): Promise<Role[]> => {
  const rows = await sql<RoleRow[]>`
    select * from roles where id = any (${[...ids]}) and (organization_id = ${organizationId} or organization_id is null)`
  return rows.map(readRole)
}

export const countOwnRoles = async (sql: Sql, organizationId: string): Promise<number> => {
  const [row] = await sql<[{ count: number }]>`select count(*) from roles where organization_id = ${organizationId}`
  return row.count
}

export const isGlobalName = async (sql: Sql, name: string): Promise<boolean> => {
  const [row] = await sql`select 1 from roles where organization_id is null and lower(name) = lower(${name})`
  return row !== undefined
}

export const replaceRole = async (
  sql: Sql,
  id: string,
  { name, description, permissions }: RoleValues,
  now: Date,
): Promise<Role> => {
  const [row] = await sql<[RoleRow]>`
    update roles set name = ${name}, description = ${description}, permissions = ${permissions}, updated_at = ${now}
    where id = ${id} returning *`
  return readRole(row)
}

export const deleteRole = async (sql: Sql, id: string): Promise<void> => {
  await sql`delete from roles where id = ${id}`
}
