// Webhook endpoints: URLs of an organization to which control itself posts webhooks. Svix has endpoints of its own.
import { randomBytes } from 'node:crypto'
import { readDisplayText } from '#src/control/display-text.ts'
import { OutboundError } from '#src/control/outbound/error.ts'
import { readTargetUrl } from '#src/control/outbound/target.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { lockApplication, writeListening } from './application-store.ts'
import {
  deleteEndpoint,
  type Endpoint,
  findEndpoint,
  insertEndpoint,
  listAttempts,
  listEndpoints,
  updateEndpoint,
} from './endpoint-store.ts'
import type { WebhookParts } from './parts.ts'
import { giveUp, lockQueue, sendAgain } from './queue.ts'
import type { ChangeEndpoint, CreateEndpoint } from './schemas.ts'
import { ensureInitialized } from './service.ts'
import { newSecret } from './signature.ts'

const mostEndpoints = 20
/** After an owner has replaced a secret, messages are signed with the old secret too for this many hours. */
const oldSecretHours = 24

const secretPurpose = (endpointId: string) => `webhook-secret:${endpointId}`

export const asEndpointView = (endpoint: Endpoint) => ({
  id: endpoint.id,
  url: endpoint.url,
  description: endpoint.description,
  events: endpoint.events,
  disabled: endpoint.disabledAt !== null,
  disabledReason: endpoint.disabledReason,
  failingSince: endpoint.failingSince?.toISOString() ?? null,
  createdAt: endpoint.createdAt.toISOString(),
  updatedAt: endpoint.updatedAt.toISOString(),
})

/**
 * Throws if control does not send webhooks itself (embedded.ts): webhooks are off, or Svix sends them and stores the
 * endpoints.
 */
const checkEmbedded = ({ provider }: WebhookParts): void => {
  if (provider?.kind === 'embedded') return
  if (provider === undefined) throw new Problem('unavailable', 'This server has no webhook provider.')
  throw new Problem(
    'conflict',
    'The webhook provider stores the endpoints. Use app-portal-access to see and change them.',
  )
}

const readUrl = (given: string): string => {
  try {
    return readTargetUrl(given).href
  } catch (error) {
    if (error instanceof OutboundError) throw new Problem('bad_request', `url: ${error.message}`, { cause: error })
    throw error
  }
}

const readDescription = (given: string): string => (given.trim() === '' ? '' : readDisplayText('description', given))

export const getEndpoint = async (parts: WebhookParts, organizationId: string, id: string): Promise<Endpoint> => {
  checkEmbedded(parts)
  const endpoint = await findEndpoint(parts.database.sql, organizationId, id)
  if (endpoint === undefined) throw new Problem('not_found', 'There is no such webhook endpoint.')
  return endpoint
}

export const viewEndpoints = async (parts: WebhookParts, organizationId: string): Promise<Endpoint[]> => {
  checkEmbedded(parts)
  return await listEndpoints(parts.database.sql, organizationId)
}

/** Creates an endpoint and its signing secret. Only the reply to this call contains the secret. */
export const createEndpoint = async (
  parts: WebhookParts,
  organization: { id: string; name: string },
  body: CreateEndpoint,
): Promise<{ endpoint: Endpoint; secret: string }> => {
  checkEmbedded(parts)
  const { database, clock, encryption } = parts
  const now = clock.now()
  const secret = newSecret()
  const id = `ep_${randomBytes(12).toString('hex')}`
  const endpoint: Endpoint = {
    id,
    organizationId: organization.id,
    url: readUrl(body.url),
    description: readDescription(body.description ?? ''),
    events: [...new Set(body.events ?? [])],
    secret: encryption.encrypt(secretPurpose(id), secret),
    previousSecret: null,
    previousSecretUntil: null,
    disabledAt: null,
    disabledReason: null,
    failingSince: null,
    createdAt: now,
    updatedAt: now,
  }
  await ensureInitialized(parts, organization)
  await database.transaction(async (transaction) => {
    await lockApplication(transaction, organization.id)
    const known = await listEndpoints(transaction, organization.id)
    if (known.length >= mostEndpoints)
      throw new Problem('conflict', `An organization can have at most ${mostEndpoints} webhook endpoints.`)
    await insertEndpoint(transaction, endpoint)
    await writeListening(transaction, organization.id)
  })
  return { endpoint, secret }
}

/** Disables an endpoint. Its waiting deliveries become `failed`. */
export const disable = async (
  transaction: Transaction,
  endpoint: Pick<Endpoint, 'id' | 'organizationId'>,
  reason: string,
  now: Date,
): Promise<void> => {
  await lockQueue(transaction)
  await lockApplication(transaction, endpoint.organizationId)
  await updateEndpoint(transaction, endpoint.id, { disabled_at: now, disabled_reason: reason }, now)
  await giveUp(transaction, endpoint.id, now)
  await writeListening(transaction, endpoint.organizationId)
}

export const changeEndpoint = async (
  parts: WebhookParts,
  organizationId: string,
  id: string,
  body: ChangeEndpoint,
): Promise<Endpoint> => {
  const { database, clock } = parts
  const found = await getEndpoint(parts, organizationId, id)
  const now = clock.now()
  const columns = {
    ...(body.url === undefined ? {} : { url: readUrl(body.url) }),
    ...(body.description === undefined ? {} : { description: readDescription(body.description) }),
    ...(body.events === undefined ? {} : { events: [...new Set(body.events)] }),
    ...(body.disabled === false ? { disabled_at: null, disabled_reason: null, failing_since: null } : {}),
  }
  await database.transaction(async (transaction) => {
    if (body.disabled === true && found.disabledAt === null)
      await disable(transaction, found, 'Disabled by an owner of the organization.', now)
    await lockApplication(transaction, organizationId)
    await updateEndpoint(transaction, id, columns, now)
    await writeListening(transaction, organizationId)
  })
  return await getEndpoint(parts, organizationId, id)
}

export const removeEndpoint = async (parts: WebhookParts, organizationId: string, id: string): Promise<void> => {
  await getEndpoint(parts, organizationId, id)
  await parts.database.transaction(async (transaction) => {
    await lockQueue(transaction)
    await lockApplication(transaction, organizationId)
    await deleteEndpoint(transaction, id)
    await writeListening(transaction, organizationId)
  })
}

/** Makes a new signing secret for an endpoint. Only the reply to this call contains the secret. */
export const rotateSecret = async (parts: WebhookParts, organizationId: string, id: string): Promise<string> => {
  const { database, clock, encryption } = parts
  const { secret } = await getEndpoint(parts, organizationId, id)
  const now = clock.now()
  const made = newSecret()
  const columns = {
    secret: encryption.encrypt(secretPurpose(id), made),
    previous_secret: secret,
    previous_secret_until: new Date(now.getTime() + oldSecretHours * 3_600_000),
  }
  await updateEndpoint(database.sql, id, columns, now)
  return made
}

/** Returns the secrets with which messages to an endpoint are signed at present, newest first. */
export const secretsOf = ({ encryption }: WebhookParts, endpoint: Endpoint, now: Date): string[] => {
  const { id, secret, previousSecret, previousSecretUntil } = endpoint
  const isOldKept = previousSecret !== null && previousSecretUntil !== null && previousSecretUntil > now
  return [secret, ...(isOldKept ? [previousSecret] : [])].map((one) => encryption.decrypt(secretPurpose(id), one))
}

export const viewAttempts = async (
  parts: WebhookParts,
  organizationId: string,
  id: string,
  { cursor, limit }: { cursor?: string; limit: number },
) => {
  await getEndpoint(parts, organizationId, id)
  const before = cursor === undefined ? undefined : Number(cursor)
  const rows = await listAttempts(parts.database.sql, id, { before, limit: limit + 1 })
  const items = rows.slice(0, limit)
  return {
    items: items.map(({ id: _id, at, isDelivered, ...attempt }) => ({
      ...attempt,
      at: at.toISOString(),
      delivered: isDelivered,
    })),
    nextCursor: rows.length > limit ? String(items.at(-1)?.id) : null,
  }
}

export const resend = async (
  parts: WebhookParts,
  organizationId: string,
  id: string,
  messageId: string,
): Promise<void> => {
  const { database, clock } = parts
  await getEndpoint(parts, organizationId, id)
  const isFound = await database.transaction(async (transaction) => {
    // Without this lock, the endpoint could be deleted or disabled before the delivery is inserted. The delivery would stay in the
    // queue forever.
    await lockQueue(transaction)
    const endpoint = await findEndpoint(transaction, organizationId, id)
    if (endpoint === undefined) throw new Problem('not_found', 'There is no such webhook endpoint.')
    if (endpoint.disabledAt !== null) throw new Problem('conflict', 'This endpoint is disabled; enable it first.')
    return await sendAgain(transaction, endpoint, messageId, clock.now())
  })
  if (!isFound) throw new Problem('not_found', 'There is no such message; messages are kept for a week.')
}
