// Starts the webhooks of control. The settings choose the provider: control's own sender, a server with the API of Svix, or none.
import { createOutbound, type Outbound } from '#src/control/outbound/outbound.ts'
import type { Parts } from '#src/control/parts.ts'
import type { ProviderChoice } from '#src/control/settings/webhook-provider.ts'
import { listenFor } from './application-store.ts'
import { createEmbedded } from './embedded.ts'
import { findEndpointById } from './endpoint-store.ts'
import { disable } from './endpoints.ts'
import type { WebhookParts } from './parts.ts'
import type { WebhookProvider } from './provider.ts'
import { forgetOld, giveUp, listOverfull, lockQueue, messagesChannel, mostWaiting } from './queue.ts'
import { mostAtOnce, startSender } from './sender.ts'
import { retryInitializations } from './service.ts'
import { createSvix } from './svix.ts'

export type WebhookRoom = WebhookParts & {
  /** Runs one sweep now. A timer runs a sweep every `sweepSeconds`, too. */
  sweep: () => Promise<void>
  /** Resolves when no message is due to be sent now. */
  settled: () => Promise<void>
  close: () => Promise<void>
}

const tidyMilliseconds = 10_000

const providerOf = (choice: ProviderChoice, parts: Parts & { outbound: Outbound }): WebhookProvider | undefined => {
  if (choice.kind === 'none') return undefined
  return choice.kind === 'svix' ? createSvix(parts, choice) : createEmbedded(parts)
}

/** Starts sending messages, and a sweep every `sweepSeconds`. If `sweepSeconds` is 0, the caller calls `sweep` itself. */
export const openWebhookRoom = async (
  given: Parts,
  { sweepSeconds }: { sweepSeconds: number },
): Promise<WebhookRoom> => {
  // Webhooks have a limit of concurrent outbound calls of their own, so they continue if control's other outbound calls hang.
  const outbound = createOutbound({ allowed: given.settings.privateTargets, mostAtOnce })
  const provider = providerOf(given.settings.webhooks, { ...given, outbound })
  const parts: WebhookParts = { ...given, outbound, provider }
  const { database, clock, log } = parts
  const { sql } = database
  await listenFor(sql, provider?.kind)
  const sender = provider && startSender(parts, provider)
  if (sender) await database.listen(messagesChannel, sender.wake, sender.wake)

  const tidy = async () => {
    await forgetOld(sql, clock.now())
    for (const id of await listOverfull(sql)) {
      const endpoint = await findEndpointById(sql, id)
      const reason = `More than ${mostWaiting} messages were waiting for this endpoint.`
      await database.transaction(async (transaction) => {
        if (endpoint !== undefined) return await disable(transaction, endpoint, reason, clock.now())
        await lockQueue(transaction)
        await giveUp(transaction, id, clock.now())
      })
      log.info({ endpointId: id }, 'too many webhooks waited for one endpoint')
    }
  }

  let tidiedAt = Number.NEGATIVE_INFINITY
  const sweep = async () => {
    sender?.wake()
    await retryInitializations(parts)
    const at = clock.now().getTime()
    if (at - tidiedAt < tidyMilliseconds) return
    tidiedAt = at
    await tidy()
  }

  let sweeping: Promise<void> | undefined
  const timer =
    sweepSeconds === 0
      ? undefined
      : setInterval(() => {
          sweeping ??= sweep()
            .catch((error) => log.warn({ err: error }, 'a sweep of webhooks failed; the next one is in a moment'))
            .finally(() => {
              sweeping = undefined
            })
        }, sweepSeconds * 1000)
  sender?.wake()

  return {
    ...parts,
    sweep,
    settled: async () => await sender?.settled(),
    close: async () => {
      clearInterval(timer)
      await sweeping
      await sender?.stop()
    },
  }
}
