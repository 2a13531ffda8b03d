// The SQL of applications. An application represents an organization at the webhook provider.
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import type { ProviderKind } from './queue.ts'

export type Application = {
  organizationId: string
  provider: ProviderKind
  /**
   * Id of the organization's application at the webhook provider. Null until `initialize` (provider.ts) has succeeded.
   */
  applicationId: string | null
  lastError: string | null
  retryCount: number
  hasEndpoints: boolean
  endpointsReadAt: Date | null
  createdAt: Date
  updatedAt: Date
}

const columns = (sql: Sql) => sql`
  organization_id as "organizationId", provider, application_id as "applicationId", last_error as "lastError",
  retry_count as "retryCount", has_endpoints as "hasEndpoints", endpoints_read_at as "endpointsReadAt",
  created_at as "createdAt", updated_at as "updatedAt"`

export const findApplication = async (sql: Sql, organizationId: string): Promise<Application | undefined> => {
  const [row] = await sql<Application[]>`
    select ${columns(sql)} from webhook_applications where organization_id = ${organizationId}`
  return row
}

/** Locks the organization's application: until the transaction ends, no endpoint of the organization is added or removed. */
export const lockApplication = async (transaction: Transaction, organizationId: string): Promise<void> => {
  await transaction`select 1 from webhook_applications where organization_id = ${organizationId} for no key update`
}

export type Initialized = { applicationId: string } | { error: string; retryAt: Date }

/**
 * Stores the result of an attempt to find or create the application. Counts the attempts in the column `retry_count`. A first
 * attempt that succeeds is not counted.
 */
export const writeInitialization = async (
  sql: Sql,
  { organizationId, provider }: { organizationId: string; provider: ProviderKind },
  result: Initialized,
  now: Date,
): Promise<Application> => {
  const applicationId = 'error' in result ? null : result.applicationId
  const error = 'error' in result ? result.error : null
  const retryAt = 'error' in result ? result.retryAt : null
  const [row] = await sql<Application[]>`
    insert into webhook_applications as known
      (organization_id, provider, application_id, last_error, retry_count, retry_at, is_listening, created_at, updated_at)
    values (${organizationId}, ${provider}, ${applicationId}, ${error}, ${error === null ? 0 : 1}, ${retryAt},
      ${provider === 'svix' && applicationId !== null}, ${now}, ${now})
    on conflict (organization_id) do update set
      -- What it had at the same provider it keeps when that cannot be asked just now.
      application_id = coalesce(excluded.application_id,
        case when known.provider = excluded.provider then known.application_id end),
      is_listening = case
        when excluded.provider = 'embedded' then exists (
          select from webhook_endpoints where organization_id = excluded.organization_id and disabled_at is null)
        else coalesce(excluded.application_id,
          case when known.provider = excluded.provider then known.application_id end) is not null end,
      provider = excluded.provider, last_error = excluded.last_error, retry_count = known.retry_count + 1,
      retry_at = excluded.retry_at, updated_at = excluded.updated_at
    returning ${columns(sql)}`
  return row as Application
}

/** Lists the organizations for which control could not create an application at this provider, and must try again now. */
export const listToRetry = (
  sql: Sql,
  provider: ProviderKind,
  now: Date,
): Promise<{ organizationId: string; name: string; retryCount: number }[]> =>
  sql`
    select organization_id as "organizationId", name, retry_count as "retryCount"
    from webhook_applications join organizations on organizations.id = organization_id
    where retry_at <= ${now} and provider = ${provider} order by retry_at limit 20`

/**
 * If an attempt to create the organization's application is due, stores the time of the next attempt and returns true. Only one
 * process gets true, and must make the attempt.
 */
export const takeRetry = async (sql: Sql, organizationId: string, now: Date, next: Date): Promise<boolean> => {
  const rows = await sql`
    update webhook_applications set retry_at = ${next}
    where organization_id = ${organizationId} and retry_at <= ${now} returning 1`
  return rows.length > 0
}

export const writeHasEndpoints = async (
  sql: Sql,
  organizationId: string,
  hasEndpoints: boolean,
  now: Date,
): Promise<void> => {
  await sql`
    update webhook_applications set has_endpoints = ${hasEndpoints}, endpoints_read_at = ${now}
    where organization_id = ${organizationId}`
}

export const writeLastError = async (sql: Sql, organizationId: string, error: string, now: Date): Promise<void> => {
  await sql`
    update webhook_applications set last_error = ${error}, updated_at = ${now} where organization_id = ${organizationId}`
}

/** Stores whether the organization has an enabled endpoint. Call this in the transaction that changed the endpoints. */
export const writeListening = async (transaction: Transaction, organizationId: string): Promise<void> => {
  await transaction`
    update webhook_applications set is_listening = exists (
      select from webhook_endpoints where organization_id = ${organizationId} and disabled_at is null)
    where organization_id = ${organizationId}`
}

/**
 * Marks the organizations for which control stores webhook messages. `provider`: the webhook provider that this server uses
 * now.
 */
export const listenFor = async (sql: Sql, provider: ProviderKind | undefined): Promise<void> => {
  await sql`
    update webhook_applications set is_listening = wanted
    from (
      select organization_id as id, case
        when provider is distinct from ${provider ?? null}::text then false
        when provider = 'svix' then application_id is not null
        else exists (select from webhook_endpoints e
                     where e.organization_id = webhook_applications.organization_id and disabled_at is null) end as wanted
      from webhook_applications) told
    where organization_id = told.id and is_listening <> wanted`
}
