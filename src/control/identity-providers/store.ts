// The SQL of identity providers. The primary key of the domain table ensures that a domain belongs to one provider only.
import type { Sql } from '../storage/database.ts'
import { type IdentityProvider, type IdentityProviderRow, readProvider } from './identity-provider.ts'

const select = (sql: Sql) => sql`
  select p.*,
    array(select domain from identity_provider_domains d where d.identity_provider_id = p.id order by domain) as domains,
    array(select role_id from identity_provider_roles r where r.identity_provider_id = p.id order by role_id) as role_ids
  from identity_providers p`

/** Lists providers, oldest first. An organization has few providers, so no pages are needed. */
export const listProviders = async (sql: Sql, organizationId: string): Promise<IdentityProvider[]> => {
  const rows = await sql<IdentityProviderRow[]>`
    ${select(sql)} where p.organization_id = ${organizationId} order by p.created_at, p.id`
  return rows.map(readProvider)
}

export const findProvider = async (
  sql: Sql,
  organizationId: string,
  id: string,
): Promise<IdentityProvider | undefined> => {
  const [row] = await sql<IdentityProviderRow[]>`
    ${select(sql)} where p.organization_id = ${organizationId} and p.id = ${id}`
  return row && readProvider(row)
}

export const countProviders = async (sql: Sql, organizationId: string): Promise<number> => {
  const [row] = await sql<[{ count: number }]>`
    select count(*) from identity_providers where organization_id = ${organizationId}`
  return row.count
}

export const insertProvider = async (sql: Sql, provider: IdentityProvider): Promise<void> => {
  await sql`
    insert into identity_providers (id, organization_id, name, issuer_url, client_id, client_secret, scope,
      allow_any_domain, trust_email_verified, enabled, created_at, updated_at)
    values (${provider.id}, ${provider.organizationId}, ${provider.name}, ${provider.issuerUrl}, ${provider.clientId},
      ${provider.sealedSecret}, ${provider.scope}, ${provider.allowAnyDomain}, ${provider.trustEmailVerified},
      ${provider.enabled}, ${provider.createdAt}, ${provider.updatedAt})`
  await writeLists(sql, provider)
}

export const writeProvider = async (sql: Sql, provider: IdentityProvider): Promise<void> => {
  await sql`
    update identity_providers set name = ${provider.name}, issuer_url = ${provider.issuerUrl},
      client_id = ${provider.clientId}, client_secret = ${provider.sealedSecret}, scope = ${provider.scope},
      allow_any_domain = ${provider.allowAnyDomain}, trust_email_verified = ${provider.trustEmailVerified},
      enabled = ${provider.enabled}, updated_at = ${provider.updatedAt}
    where id = ${provider.id}`
  await writeLists(sql, provider)
}

const writeLists = async (sql: Sql, { id, emailDomains, defaultAssignedRoleIds }: IdentityProvider): Promise<void> => {
  await sql`
    delete from identity_provider_domains where identity_provider_id = ${id} and domain <> all(${emailDomains}::text[])`
  await sql`delete from identity_provider_roles where identity_provider_id = ${id}`
  // The domains are inserted one by one, in sorted order. A single statement could insert them in another order, and two
  // such transactions could deadlock.
  for (const domain of emailDomains) await insertDomain(sql, id, domain)
  await sql`
    insert into identity_provider_roles (identity_provider_id, role_id)
    select ${id}, unnest(${defaultAssignedRoleIds}::text[])`
}

/** Inserts a domain of a provider. If another provider has the domain, the insert violates the primary key. */
const insertDomain = async (sql: Sql, id: string, domain: string): Promise<void> => {
  await sql`
    insert into identity_provider_domains as d (domain, identity_provider_id)
    select ${domain}, ${id}
    where not exists (select 1 from identity_provider_domains where domain = ${domain} and identity_provider_id = ${id})`
}

/** Deletes a provider with its domains, default roles and links to users. Returns whether the provider existed. */
export const deleteProvider = async (sql: Sql, organizationId: string, id: string): Promise<boolean> => {
  const { count } = await sql`delete from identity_providers where organization_id = ${organizationId} and id = ${id}`
  return count === 1
}

/**
 * Lists the domains of the verified e-mail addresses of members. Ignores addresses that only the identity provider of
 * an organization has verified.
 */
export const listVerifiedDomains = async (sql: Sql, organizationId: string): Promise<string[]> => {
  const rows = await sql<{ domain: string }[]>`
    select distinct lower(substring(u.email from '[^@]*$')) as domain
    from members m join users u on u.id = m.user_id
    where m.organization_id = ${organizationId} and u.email_verified and u.email_verified_by is distinct from 'sso'`
  return rows.map(({ domain }) => domain)
}
