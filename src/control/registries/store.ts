// The SQL of image registries. Queries for a caller always select by the caller's organization.
import type { Sql, Transaction } from '../storage/database.ts'

export type Registry = {
  id: string
  organizationId: string
  name: string
  url: string
  host: string
  username: string
  /** The password, encrypted. */
  sealedPassword: string
  project: string
  createdAt: Date
  updatedAt: Date
}

const columns = (sql: Sql) => sql`
  id, organization_id as "organizationId", name, url, host, username, password as "sealedPassword", project,
  created_at as "createdAt", updated_at as "updatedAt"`

/**
 * Lists the image registries of an organization, oldest first. An organization has at most 50 registries, so no pages are
 * needed.
 */
export const listRegistries = async (sql: Sql, organizationId: string): Promise<Registry[]> =>
  await sql<Registry[]>`
    select ${columns(sql)} from docker_registries where organization_id = ${organizationId} order by created_at, id`

export const listRegistriesOf = async (sql: Sql, organizationIds: readonly string[]): Promise<Registry[]> =>
  await sql<Registry[]>`
    select ${columns(sql)} from docker_registries where organization_id = any(${organizationIds}::text[])
    order by created_at, id`

export const findRegistry = async (sql: Sql, organizationId: string, id: string): Promise<Registry | undefined> => {
  const [row] = await sql<Registry[]>`
    select ${columns(sql)} from docker_registries where organization_id = ${organizationId} and id = ${id}`
  return row
}

/**
 * Inserts an image registry. Inserts nothing if the organization has `most` registries already. Returns whether the registry
 * was inserted.
 */
export const insertRegistry = async (transaction: Transaction, registry: Registry, most: number): Promise<boolean> => {
  const { id, organizationId, name, url, host, username, sealedPassword, project, createdAt, updatedAt } = registry
  // Locks the organization, so that its concurrent inserts run one after the other and the count is correct.
  await transaction`select 1 from organizations where id = ${organizationId} for no key update`
  const { count } = await transaction`
    insert into docker_registries (id, organization_id, name, url, host, username, password, project, created_at,
      updated_at)
    select ${id}, ${organizationId}, ${name}, ${url}, ${host}, ${username}, ${sealedPassword}, ${project},
      ${createdAt}::timestamptz, ${updatedAt}::timestamptz
    where (select count(*) from docker_registries where organization_id = ${organizationId}) < ${most}`
  return count === 1
}

/**
 * Writes a changed registry. Returns false if another call has changed or deleted the registry since `before` was read.
 */
export const writeRegistry = async (sql: Sql, before: Registry, after: Registry): Promise<boolean> => {
  const { count } = await sql`
    update docker_registries set name = ${after.name}, url = ${after.url}, host = ${after.host},
      username = ${after.username}, password = ${after.sealedPassword}, project = ${after.project},
      updated_at = ${after.updatedAt}
    where organization_id = ${before.organizationId} and id = ${before.id} and name = ${before.name}
      and url = ${before.url} and host = ${before.host} and username = ${before.username}
      and password = ${before.sealedPassword} and project = ${before.project}`
  return count === 1
}

export const deleteRegistry = async (sql: Sql, organizationId: string, id: string): Promise<boolean> => {
  const { count } = await sql`delete from docker_registries where organization_id = ${organizationId} and id = ${id}`
  return count === 1
}
