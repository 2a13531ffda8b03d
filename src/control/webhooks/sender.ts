// Sends the queued deliveries. The sender wakes up every few seconds, and when PostgreSQL announces a new message (NOTIFY).
import type { Delivery, Outcome } from './delivery.ts'
import { findEndpointById } from './endpoint-store.ts'
import { disable } from './endpoints.ts'
import type { WebhookParts } from './parts.ts'
import type { WebhookProvider } from './provider.ts'
import { claim, dispatch, finish } from './queue.ts'

/** Maximum number of concurrent deliveries in one control process. */
export const mostAtOnce = 96
/**
 * Number of running deliveries at which an endpoint is busy. A busy endpoint gets no further delivery, so that it does not delay
 * other endpoints.
 */
const busyFrom = 5
/**
 * The part of the free places that one organization may take, rounded down and at least 1. Free places: `mostAtOnce` minus all
 * running deliveries. Example: with 40 free places, an organization may take 5. It may take none if 5 or more of its own deliveries
 * run already.
 */
const shareOfRoom = 1 / 8
/**
 * Milliseconds for which a shutdown waits for running deliveries. Unfinished deliveries are sent again when their lease
 * is over.
 */
const stopMilliseconds = 2000

export type Sender = {
  /** Wakes the sender. Call this after a message or a delivery is written. */
  wake: () => void
  /** Resolves when no delivery is due to be sent now. */
  settled: () => Promise<void>
  stop: () => Promise<void>
}

export const startSender = (parts: WebhookParts, provider: WebhookProvider): Sender => {
  const { database, clock, log } = parts
  const underWay = new Map<Delivery, Promise<void>>()
  let isStopped = false
  let isWoken = false
  let running: Promise<void> | undefined

  const send = async (delivery: Delivery): Promise<void> => {
    const at = clock.now()
    const begun = performance.now()
    const outcome = await provider.attempt(delivery).catch((error): Outcome => {
      log.error({ err: error, deliveryId: delivery.id }, 'a webhook could not be sent')
      return { kind: 'failed', status: null, error: 'It could not be sent; the log of the server says why.' }
    })
    const attempted = { outcome, at, durationMilliseconds: performance.now() - begun }
    const dead = await database.transaction((transaction) => finish(transaction, delivery, attempted, clock.now()))
    if (dead === undefined) return
    const endpoint = await findEndpointById(database.sql, delivery.endpointId)
    // The function `finish` has just disabled the endpoint. Now the function `disable` marks its waiting deliveries as failed. If
    // the owner has already enabled the endpoint again, the deliveries stay in the queue.
    if (endpoint === undefined || endpoint.disabledAt === null) return
    await database.transaction((transaction) => disable(transaction, endpoint, dead, clock.now()))
    log.info({ endpointId: endpoint.id, organizationId: endpoint.organizationId, dead }, 'a webhook endpoint is dead')
  }

  const begin = (delivery: Delivery) => {
    const work = send(delivery)
      // After an internal error, the delivery is retried when its lease is over.
      .catch((error) => log.error({ err: error, deliveryId: delivery.id }, 'a webhook delivery broke off'))
      .finally(() => {
        underWay.delete(delivery)
        wake()
      })
    underWay.set(delivery, work)
  }

  /**
   * Lists the endpoints or the organizations that have at least `from` running deliveries. `key`: returns the endpoint
   * or organization of a delivery.
   */
  const listBusy = (key: (delivery: Delivery) => string, from: number): string[] => {
    const counts = new Map<string, number>()
    for (const delivery of underWay.keys()) counts.set(key(delivery), (counts.get(key(delivery)) ?? 0) + 1)
    return [...counts].filter(([, count]) => count >= from).map(([id]) => id)
  }

  const work = async (): Promise<void> => {
    while (isWoken && !isStopped) {
      isWoken = false
      const dispatched = await database.transaction((transaction) => dispatch(transaction, provider.kind, clock.now()))
      const room = mostAtOnce - underWay.size
      if (room <= 0) continue
      const share = Math.max(1, Math.floor(room * shareOfRoom))
      const claimed = await claim(database.sql, provider.kind, {
        room,
        share,
        busyEndpoints: listBusy(({ endpointId }) => endpointId, busyFrom),
        busyOrganizations: listBusy(({ message }) => message.organizationId, share),
        now: clock.now(),
      })
      if (isStopped) return
      for (const delivery of claimed) begin(delivery)
      if (dispatched > 0 || claimed.length > 0) isWoken = true
    }
  }

  const wake = () => {
    isWoken = true
    if (isStopped || running !== undefined) return
    running = work()
      .catch((error) => log.warn({ err: error }, 'webhooks could not be sent; tried again in a moment'))
      .finally(() => {
        running = undefined
      })
  }

  return {
    wake,
    settled: async () => {
      while (running !== undefined || underWay.size > 0) await Promise.all([running, ...underWay.values()])
    },
    stop: async () => {
      isStopped = true
      const ended = Promise.all([running, ...underWay.values()])
      const { promise: enough, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, stopMilliseconds)
      await Promise.race([ended, enough])
      clearTimeout(timer)
    },
  }
}
