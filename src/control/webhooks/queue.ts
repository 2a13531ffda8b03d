// The queue of webhook deliveries, shared by all control processes. `dispatch` turns a message about one event into a delivery for
// each endpoint that wants it (with Svix, into one delivery). `dispatch` finds new messages by the mark `is_dispatched`. A search
// by id would miss a message whose transaction commits late.
//
// A process that takes a delivery has `leaseSeconds` to send it. After that, another process may take the delivery.
//
// The deliveries to one endpoint about one sandbox, snapshot or volume are a lane: they are sent in order, and only the first of
// them has a `due_at`.
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import { deleteBeyond } from '#src/control/storage/history.ts'
import type { Delivery, Outcome } from './delivery.ts'
import { sentenceOf } from './delivery.ts'
import type { Message } from './event.ts'
import { deadAfterSeconds, waitAfter } from './schedule.ts'

export type ProviderKind = 'embedded' | 'svix'

/** Key of the advisory lock of PostgreSQL that locks the queue. The number is arbitrary; no other code uses it. */
export const queueLock = 7_305_540

const messagesAtOnce = 500
const perEndpointAtOnce = 4
/** After this many seconds, another process may send a delivery that is not finished. Must be longer than an attempt can take. */
const leaseSeconds = 20

const later = (now: Date, seconds: number) => new Date(now.getTime() + seconds * 1000)

/**
 * Locks the queue until the transaction ends. Call this before adding deliveries, or before marking all deliveries of an endpoint
 * as failed. Meanwhile no process can store the outcome of an attempt (`finish`).
 */
export const lockQueue = async (transaction: Transaction): Promise<void> => {
  await transaction`select pg_advisory_xact_lock(${queueLock})`
}

/**
 * Turns new messages into deliveries, and returns the number of messages. A message becomes one delivery for each endpoint that
 * wants it. With Svix, a message becomes one delivery for the organization.
 */
export const dispatch = async (transaction: Transaction, provider: ProviderKind, now: Date): Promise<number> => {
  const [found] = await transaction`select 1 from webhook_messages where not is_dispatched limit 1`
  if (found === undefined) return 0
  // Only one process at a time dispatches, in the order of the messages' ids. So an endpoint gets the messages about one
  // sandbox, snapshot or volume in the order of the events.
  await lockQueue(transaction)
  const rows = await transaction`
    with batch as (
      select id, organization_id, event, subject_id from webhook_messages
      where not is_dispatched order by id limit ${messagesAtOnce}
    ), wanted as (
      select batch.id as message_id, batch.organization_id, endpoints.id as endpoint_id, subject_id as lane
      from batch join webhook_endpoints endpoints using (organization_id)
      where ${provider} = 'embedded' and disabled_at is null and (events = '{}' or event = any(events))
      union all
      select batch.id, organization_id, 'svix:' || organization_id, subject_id
      from batch join webhook_applications applications using (organization_id)
      where ${provider} = 'svix' and applications.provider = 'svix' and application_id is not null
    ), made as (
      insert into webhook_deliveries (message_id, organization_id, endpoint_id, lane, state, due_at)
      select message_id, organization_id, endpoint_id, lane, 'waiting',
        case when row_number() over (partition by endpoint_id, lane order by message_id) = 1 and not exists (
          select from webhook_deliveries before
          where before.endpoint_id = wanted.endpoint_id and before.lane = wanted.lane and before.state = 'waiting')
        then ${now}::timestamptz end
      from wanted order by message_id
    )
    update webhook_messages set is_dispatched = true from batch where webhook_messages.id = batch.id
    returning webhook_messages.id`
  return rows.length
}

/** A delivery that was taken from the queue. `id` is the id of the delivery. */
type ClaimedRow = Message & { endpointId: string; attempts: number; messageId: number }

export type Claim = {
  /**
   * `room`: maximum number of deliveries to take. `share`: maximum number of deliveries of one organization among
   * them.
   */
  room: number
  share: number
  /**
   * Endpoints and organizations for which this process already runs the maximum number of deliveries. None of their
   * deliveries is taken from the queue.
   */
  busyEndpoints: readonly string[]
  busyOrganizations: readonly string[]
  now: Date
}

/**
 * Takes due deliveries from the queue. For `leaseSeconds`, no other process sends these deliveries. Endpoints and organizations
 * come in random order.
 */
export const claim = async (
  sql: Sql,
  provider: ProviderKind,
  { room, share, busyEndpoints, busyOrganizations, now }: Claim,
): Promise<Delivery[]> => {
  const [due] = await sql`
    select 1 from webhook_deliveries where state = 'waiting' and due_at <= ${now} limit 1`
  if (due === undefined) return []
  const rows = await sql<ClaimedRow[]>`
    with sinks as materialized (
      select id, organization_id from webhook_endpoints where ${provider} = 'embedded' and disabled_at is null
      union all
      select 'svix:' || organization_id, organization_id from webhook_applications
      where ${provider} = 'svix' and provider = 'svix' and application_id is not null
    ), idle as (
      select organization_id, array_agg(id order by random()) as endpoints from sinks
      where id <> all(${busyEndpoints as string[]}::text[])
        and organization_id <> all(${busyOrganizations as string[]}::text[])
      group by organization_id order by random()
    ), due as (
      select delivery.id from idle cross join lateral (
        select waiting.id from unnest(idle.endpoints) endpoint cross join lateral (
          select id from webhook_deliveries
          where endpoint_id = endpoint and state = 'waiting' and due_at <= ${now}
          order by due_at limit ${perEndpointAtOnce} for update skip locked
        ) waiting
        limit ${share}
      ) delivery
      limit ${room}
    )
    update webhook_deliveries delivery set attempts = attempts + 1, due_at = ${later(now, leaseSeconds)}
    from due, webhook_messages message
    where delivery.id = due.id and message.id = delivery.message_id
    returning delivery.id, delivery.endpoint_id as "endpointId", delivery.attempts, message.id as "messageId",
      message.public_id as "publicId", message.organization_id as "organizationId", message.event,
      message.subject_id as "subjectId", message.name, message.sandbox_class as "sandboxClass",
      message.old_state as "oldState", message.state, message.at, message.reason, message.cause, message.labels,
      case when message.by_kind is not null
        then jsonb_build_object('kind', message.by_kind, 'id', message.by_id) end as by`
  return rows.map(({ id, endpointId, attempts, messageId, ...message }) => ({
    id,
    endpointId,
    attempts,
    message: { ...message, id: messageId },
  }))
}

export type Attempted = { outcome: Outcome; at: Date; durationMilliseconds: number }

/**
 * Stores the outcome of an attempt. After a success or the last attempt, the next delivery of the lane becomes due. Writes
 * nothing if another process has taken the delivery.
 *
 * Disables an endpoint that answered 410 or has failed for too long, and returns the reason. All this is one transaction,
 * so no process can send the lane's next delivery in between.
 */
export const finish = async (
  transaction: Transaction,
  delivery: Delivery,
  { outcome, at, durationMilliseconds }: Attempted,
  now: Date,
): Promise<string | undefined> => {
  await transaction`select pg_advisory_xact_lock_shared(${queueLock})`
  const [endpoint] = await transaction<{ failingSince: Date | null; isDisabled: boolean }[]>`
    select failing_since as "failingSince", disabled_at is not null as "isDisabled" from webhook_endpoints
    where id = ${delivery.endpointId} for no key update`
  const wait = outcome.kind === 'failed' ? waitAfter(delivery.attempts) : undefined
  const state = outcome.kind === 'delivered' ? 'delivered' : wait === undefined ? 'failed' : 'waiting'
  const [written] = await transaction<{ lane: string }[]>`
    update webhook_deliveries set state = ${state},
      due_at = ${wait === undefined ? null : later(now, wait)}, ended_at = ${wait === undefined ? now : null}
    where id = ${delivery.id} and state = 'waiting' and attempts = ${delivery.attempts} returning lane`
  if (written === undefined) return undefined
  await transaction`
    insert into webhook_attempts
      (delivery_id, endpoint_id, number, at, duration_milliseconds, status, error, is_delivered)
    values (${delivery.id}, ${delivery.endpointId}, ${delivery.attempts}, ${at}, ${Math.round(durationMilliseconds)},
      ${outcome.status}, ${outcome.kind === 'delivered' ? null : outcome.error}, ${outcome.kind === 'delivered'})`
  if (state !== 'waiting') await letNextGo(transaction, delivery.endpointId, written.lane, now)
  if (endpoint === undefined) return undefined
  if (outcome.kind === 'delivered') {
    if (endpoint.failingSince !== null)
      await transaction`update webhook_endpoints set failing_since = null where id = ${delivery.endpointId}`
    return undefined
  }
  if (endpoint.failingSince === null)
    await transaction`update webhook_endpoints set failing_since = ${at} where id = ${delivery.endpointId}`
  const dead = state === 'waiting' || endpoint.isDisabled ? undefined : whyDead(outcome, at, endpoint.failingSince)
  if (dead !== undefined)
    await transaction`
      update webhook_endpoints set disabled_at = ${now}, disabled_reason = ${dead} where id = ${delivery.endpointId}`
  return dead
}

const whyDead = (outcome: Outcome, at: Date, failingSince: Date | null): string | undefined => {
  if (outcome.kind === 'delivered') return undefined
  if (outcome.kind === 'gone') return outcome.error
  if (failingSince === null || at.getTime() - failingSince.getTime() < deadAfterSeconds * 1000) return undefined
  return `No message has been delivered since ${failingSince.toISOString()}. ${sentenceOf(outcome)}`
}

const letNextGo = async (transaction: Transaction, endpointId: string, lane: string, now: Date): Promise<void> => {
  await transaction`
    update webhook_deliveries set due_at = ${now} where id = (
      select id from webhook_deliveries
      where endpoint_id = ${endpointId} and lane = ${lane} and state = 'waiting'
      order by message_id limit 1)`
}

/** Marks all waiting deliveries of an endpoint as failed. The caller must hold the queue's lock. */
export const giveUp = async (transaction: Transaction, endpointId: string, now: Date): Promise<void> => {
  await transaction`
    update webhook_deliveries set state = 'failed', due_at = null, ended_at = ${now}
    where endpoint_id = ${endpointId} and state = 'waiting'`
}

/**
 * Queues a message for an endpoint again, because a user requested it. The message does not wait for earlier deliveries. Returns
 * false if the organization has no such message.
 */
export const sendAgain = async (
  transaction: Transaction,
  endpoint: { id: string; organizationId: string },
  publicId: string,
  now: Date,
): Promise<boolean> => {
  const rows = await transaction`
    insert into webhook_deliveries (message_id, organization_id, endpoint_id, lane, state, due_at)
    select id, organization_id, ${endpoint.id}, 'again:' || gen_random_uuid(), 'waiting', ${now}
    from webhook_messages where public_id = ${publicId} and organization_id = ${endpoint.organizationId}
    returning id`
  if (rows.length > 0) await transaction`select pg_notify('webhook_messages', '')`
  return rows.length > 0
}

export const messagesChannel = 'webhook_messages'

const daysKept = 7
const endedKeptPerEndpoint = 10_000
const rowsAtOnce = 5000
/** Maximum number of messages in the database. The messages need about 0.5 GB, or a few GB if labels and reasons are long. */
const mostMessages = 1_000_000
/** An endpoint with more waiting deliveries is disabled, because it slows down the queue, which all endpoints share. */
export const mostWaiting = 10_000

/**
 * Deletes messages that are older than `daysKept`. If there are more than `most`, deletes the oldest messages of the organization
 * with the most messages. Messages that are still to be sent stay.
 */
export const forgetOld = async (sql: Sql, now: Date, most = mostMessages): Promise<void> => {
  const before = later(now, -daysKept * 86_400)
  await sql`
    delete from webhook_messages where id in (
      select id from webhook_messages message
      where at < ${before} and is_dispatched and not exists (
        select from webhook_deliveries where message_id = message.id
          and (state = 'waiting' or ended_at >= ${before}))
      order by at limit ${rowsAtOnce})`
  await sql`
    delete from webhook_deliveries where id in (
      select old.id from (select distinct endpoint_id from webhook_deliveries) endpoints
        cross join lateral (
          select id from webhook_deliveries
          where endpoint_id = endpoints.endpoint_id and state <> 'waiting'
          order by id desc offset ${endedKeptPerEndpoint} limit ${rowsAtOnce}
        ) old)`
  const isOver = sql`is_dispatched and not exists (
    select from webhook_deliveries where message_id = webhook_messages.id and state = 'waiting')`
  await deleteBeyond(sql, 'webhook_messages', most, isOver)
  await sql`delete from webhook_portal_tokens where expires_at <= ${now}`
}

/** Lists endpoints for which more than `mostWaiting` deliveries wait. */
export const listOverfull = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ endpointId: string }[]>`
    select endpoint_id as "endpointId" from webhook_deliveries where state = 'waiting'
    group by endpoint_id having count(*) > ${mostWaiting}`
  return rows.map(({ endpointId }) => endpointId)
}
