// The SQL of secrets. Queries for a caller always select by the caller's organization.
import type { Sql, Transaction } from '../storage/database.ts'
import type { SecretsQuery } from './schemas.ts'

export type Secret = {
  id: string
  organizationId: string
  name: string
  description: string | null
  placeholder: string
  /** The value, encrypted. */
  sealedValue: string
  hosts: string[]
  version: number
  createdAt: Date
  updatedAt: Date
}

export type Authority = { organizationId: string; certificate: string; sealedKey: string }

const columns = (sql: Sql) => sql`
  id, organization_id as "organizationId", name, description, placeholder, value as "sealedValue", hosts, version,
  created_at as "createdAt", updated_at as "updatedAt"`

export const findSecret = async (sql: Sql, organizationId: string, id: string): Promise<Secret | undefined> => {
  const [row] = await sql<Secret[]>`
    select ${columns(sql)} from secrets where organization_id = ${organizationId} and id = ${id}`
  return row
}

/** Lists the first `most` secrets in the order of their names. */
export const listSecrets = (sql: Sql, organizationId: string, most: number): Promise<Secret[]> =>
  sql<
    Secret[]
  >`select ${columns(sql)} from secrets where organization_id = ${organizationId} order by name limit ${most}`

const sortColumns = { name: 'name', createdAt: 'created_at', updatedAt: 'updated_at' } as const

type Page = Pick<SecretsQuery, 'limit' | 'name' | 'sort' | 'order'> & {
  after: { value: unknown; id: string } | undefined
}

/** Reads one page of secrets, and one secret more, which shows that there is a next page. */
export const pageSecrets = async (sql: Sql, organizationId: string, page: Page): Promise<Secret[]> => {
  const { limit, sort, order, after } = page
  const column = sql(sortColumns[sort])
  const [direction, beyond] = order === 'asc' ? [sql`asc`, sql`>`] : [sql`desc`, sql`<`]
  const value = after && (sort === 'name' ? sql`${String(after.value)}` : sql`${String(after.value)}::timestamptz`)
  return await sql<Secret[]>`
    select ${columns(sql)} from secrets
    where ${isNamed(sql, organizationId, page.name)}
      ${after && value ? sql`and (${column}, id) ${beyond} (${value}, ${after.id})` : sql``}
    order by ${column} ${direction}, id ${direction} limit ${limit + 1}`
}

const isNamed = (sql: Sql, organizationId: string, part: string | undefined) => sql`
  organization_id = ${organizationId} ${part ? sql`and position(lower(${part}) in lower(name)) > 0` : sql``}`

export const countSecrets = async (sql: Sql, organizationId: string, part: string | undefined): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::integer as count from secrets where ${isNamed(sql, organizationId, part)}`
  return row?.count ?? 0
}

/** Inserts a secret. If the organization has as many secrets as its quota allows, inserts nothing and returns the quota. */
export const insertSecret = async (transaction: Transaction, secret: Secret): Promise<number | undefined> => {
  const { id, organizationId, name, description, placeholder, sealedValue, hosts, version, createdAt, updatedAt } =
    secret
  // Locks the organization, so that its concurrent inserts run one after the other and the count is correct.
  const [organization] = await transaction<{ most: number }[]>`
    select secret_quota as most from organizations where id = ${organizationId} for no key update`
  const most = organization?.most ?? 0
  const { count } = await transaction`
    insert into secrets (id, organization_id, name, description, placeholder, value, hosts, version, created_at, updated_at)
    select ${id}, ${organizationId}, ${name}, ${description}, ${placeholder}, ${sealedValue}, ${hosts}, ${version},
      ${createdAt}::timestamptz, ${updatedAt}::timestamptz
    where (select count(*) from secrets where organization_id = ${organizationId}) < ${most}`
  return count === 1 ? undefined : most
}

type Change = { sealedValue: string | undefined; description: string | undefined; hosts: string[] | undefined }

/** Changes the given fields of a secret. Returns undefined if there is no such secret. */
export const writeSecret = async (
  sql: Sql,
  { organizationId, id }: { organizationId: string; id: string },
  { sealedValue, description, hosts }: Change,
  now: Date,
): Promise<Secret | undefined> => {
  const [row] = await sql<Secret[]>`
    update secrets set value = coalesce(${sealedValue ?? null}, value),
      description = coalesce(${description ?? null}, description), hosts = coalesce(${hosts ?? null}::text[], hosts),
      version = version + 1, updated_at = ${now}
    where organization_id = ${organizationId} and id = ${id} returning ${columns(sql)}`
  return row
}

export const deleteSecret = async (sql: Sql, organizationId: string, id: string): Promise<boolean> => {
  const { count } = await sql`delete from secrets where organization_id = ${organizationId} and id = ${id}`
  return count === 1
}

/** Locks the secrets with these names, so that none of them is deleted before the transaction ends. */
export const holdSecrets = (transaction: Transaction, organizationId: string, names: readonly string[]) =>
  transaction<Pick<Secret, 'id' | 'name' | 'placeholder'>[]>`
    select id, name, placeholder from secrets
    where organization_id = ${organizationId} and name = any(${names as string[]}::text[]) order by id for share`

export const listSecretsById = (sql: Sql, ids: readonly string[]): Promise<Secret[]> =>
  sql<Secret[]>`select ${columns(sql)} from secrets where id = any(${ids as string[]}::text[])`

export const findAuthorities = (sql: Sql, organizationIds: readonly string[]): Promise<Authority[]> =>
  sql<Authority[]>`
    select organization_id as "organizationId", certificate, private_key as "sealedKey" from secret_authorities
    where organization_id = any(${organizationIds as string[]}::text[])`

/** Stores the certificate authority of an organization, if the organization has none yet. */
export const insertAuthority = async (sql: Sql, authority: Authority, now: Date): Promise<void> => {
  const { organizationId, certificate, sealedKey } = authority
  await sql`
    insert into secret_authorities (organization_id, certificate, private_key, created_at)
    values (${organizationId}, ${certificate}, ${sealedKey}, ${now}) on conflict do nothing`
}
