// A webhook provider with the public API of Svix: Svix itself, or a server of the operator with this API.
import { ApiException, Svix } from 'svix'
import type { Logger } from '#src/kit/log.ts'
import { findApplication, writeHasEndpoints, writeLastError } from './application-store.ts'
import type { Delivery, Outcome } from './delivery.ts'
import { payloadOf } from './event.ts'
import type { WebhookParts } from './parts.ts'
import { ProviderFailed, type WebhookProvider } from './provider.ts'

export type SvixAccess = { url: string; token: string }

const timeoutMilliseconds = 10_000
/** Seconds for which the reply of Svix about an application's endpoints is cached. */
const endpointsKnownSeconds = 60

type SvixParts = Pick<WebhookParts, 'database' | 'clock' | 'log'>

export const createSvix = (parts: SvixParts, { url, token }: SvixAccess): WebhookProvider => {
  const svix = new Svix(token, {
    serverUrl: url,
    requestTimeout: timeoutMilliseconds,
    // The client must not retry. Our own queue retries failed messages, and survives a restart of this process.
    numRetries: 0,
  })

  const hasEndpoints = async (applicationId: string) => {
    const { data } = await svix.endpoint.list(applicationId, { limit: 1 })
    return data.length > 0
  }

  /**
   * Returns whether the organization has webhook endpoints at Svix. The result may be a minute old. Returns true if
   * Svix cannot be reached.
   */
  const isHeard = async (applicationId: string, organizationId: string): Promise<boolean> => {
    const { database, clock } = parts
    const known = await findApplication(database.sql, organizationId)
    const now = clock.now()
    if (known?.endpointsReadAt && now.getTime() - known.endpointsReadAt.getTime() < endpointsKnownSeconds * 1000)
      return known.hasEndpoints
    const found = await hasEndpoints(applicationId).catch(() => undefined)
    if (found !== undefined) await writeHasEndpoints(database.sql, organizationId, found, now)
    return found ?? true
  }

  const send = async ({ message }: Delivery): Promise<Outcome> => {
    const { database, clock } = parts
    const application = await findApplication(database.sql, message.organizationId)
    if (!application?.applicationId)
      return { kind: 'failed', status: null, error: 'The webhook application of this organization does not exist.' }
    if (!(await isHeard(application.applicationId, message.organizationId))) return { kind: 'delivered', status: null }
    try {
      await svix.message.create(application.applicationId, {
        eventType: message.event,
        eventId: message.publicId,
        payload: payloadOf(message),
      })
      return { kind: 'delivered', status: 202 }
    } catch (error) {
      // Svix already has a message with this event id: an earlier attempt arrived, but its reply was lost.
      if (error instanceof ApiException && error.code === 409) return { kind: 'delivered', status: 409 }
      const { message: sentence } = asFailure(error, parts.log)
      await writeLastError(database.sql, message.organizationId, sentence, clock.now())
      return { kind: 'failed', status: error instanceof ApiException ? error.code : null, error: sentence }
    }
  }

  const asked = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      throw asFailure(error, parts.log)
    }
  }

  return {
    kind: 'svix',
    initialize: async ({ id, name }) => (await asked(svix.application.getOrCreate({ name, uid: id }))).id,
    openPortal: async (applicationId) => {
      const { token: portalToken, url: portalUrl } = await asked(svix.authentication.appPortalAccess(applicationId, {}))
      return { token: portalToken, url: portalUrl }
    },
    hasEndpoints: (applicationId) => asked(hasEndpoints(applicationId)),
    attempt: send,
  }
}

const asFailure = (error: unknown, log: Logger): ProviderFailed => {
  if (error instanceof ApiException) {
    return new ProviderFailed(`The webhook provider answered ${error.code}.`, { cause: error })
  }
  log.debug({ err: error }, 'the webhook provider cannot be reached')
  return new ProviderFailed('The webhook provider could not be reached.', { cause: error })
}
