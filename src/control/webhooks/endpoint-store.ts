// The SQL of the webhook endpoints to which control itself sends messages. Endpoints at Svix are not stored here.
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import type { WebhookEvent } from './event.ts'

export type Endpoint = {
  id: string
  organizationId: string
  url: string
  description: string
  /** The kinds of events that the endpoint gets. Empty: all kinds. */
  events: WebhookEvent[]
  /** The signing secret, encrypted. `previousSecret`: the secret before the last rotation, encrypted too. */
  secret: string
  previousSecret: string | null
  previousSecretUntil: Date | null
  disabledAt: Date | null
  disabledReason: string | null
  failingSince: Date | null
  createdAt: Date
  updatedAt: Date
}

type Row = Record<string, unknown>

const readEndpoint = (row: Row): Endpoint =>
  ({
    id: row['id'],
    organizationId: row['organization_id'],
    url: row['url'],
    description: row['description'],
    events: row['events'],
    secret: row['secret'],
    previousSecret: row['previous_secret'],
    previousSecretUntil: row['previous_secret_until'],
    disabledAt: row['disabled_at'],
    disabledReason: row['disabled_reason'],
    failingSince: row['failing_since'],
    createdAt: row['created_at'],
    updatedAt: row['updated_at'],
  }) as Endpoint

export const listEndpoints = async (sql: Sql, organizationId: string): Promise<Endpoint[]> => {
  const rows = await sql`
    select * from webhook_endpoints where organization_id = ${organizationId} order by created_at, id`
  return rows.map(readEndpoint)
}

export const findEndpoint = async (sql: Sql, organizationId: string, id: string): Promise<Endpoint | undefined> => {
  const [row] = await sql`select * from webhook_endpoints where organization_id = ${organizationId} and id = ${id}`
  return row && readEndpoint(row)
}

/** Finds an endpoint of any organization. The sender of webhooks, which sends for all organizations, uses this function. */
export const findEndpointById = async (sql: Sql, id: string): Promise<Endpoint | undefined> => {
  const [row] = await sql`select * from webhook_endpoints where id = ${id}`
  return row && readEndpoint(row)
}

export const insertEndpoint = async (transaction: Transaction, endpoint: Endpoint): Promise<void> => {
  await transaction`
    insert into webhook_endpoints (id, organization_id, url, description, events, secret, created_at, updated_at)
    values (${endpoint.id}, ${endpoint.organizationId}, ${endpoint.url}, ${endpoint.description}, ${endpoint.events},
      ${endpoint.secret}, ${endpoint.createdAt}, ${endpoint.updatedAt})`
}

/** Updates an endpoint. `columns`: new values by column name. */
export const updateEndpoint = async (sql: Sql, id: string, columns: Row, now: Date): Promise<void> => {
  await sql`update webhook_endpoints set ${sql({ ...columns, updated_at: now })} where id = ${id}`
}

export const deleteEndpoint = async (transaction: Transaction, id: string): Promise<void> => {
  await transaction`delete from webhook_deliveries where endpoint_id = ${id}`
  await transaction`delete from webhook_endpoints where id = ${id}`
}

export type AttemptRow = {
  id: number
  messageId: string
  event: WebhookEvent
  number: number
  at: Date
  durationMilliseconds: number
  status: number | null
  error: string | null
  isDelivered: boolean
}

/**
 * Lists the attempts to deliver messages to an endpoint, newest first. `before`: the id of the last attempt on the
 * previous page.
 */
export const listAttempts = (
  sql: Sql,
  endpointId: string,
  { before, limit }: { before: number | undefined; limit: number },
): Promise<AttemptRow[]> =>
  sql<AttemptRow[]>`
    select attempt.id, message.public_id as "messageId", message.event, attempt.number, attempt.at,
      attempt.duration_milliseconds as "durationMilliseconds", attempt.status, attempt.error,
      attempt.is_delivered as "isDelivered"
    from webhook_attempts attempt
      join webhook_deliveries delivery on delivery.id = attempt.delivery_id
      join webhook_messages message on message.id = delivery.message_id
    where attempt.endpoint_id = ${endpointId} ${before === undefined ? sql`` : sql`and attempt.id < ${before}::bigint`}
    order by attempt.id desc limit ${limit}`
