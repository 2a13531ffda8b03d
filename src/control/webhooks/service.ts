// The four calls of the public API about an organization's webhooks: set up, read the status, open the portal, refresh.
import type { Caller } from '#src/control/auth/route.ts'
import { Problem } from '#src/problems.ts'
import {
  type Application,
  findApplication,
  listToRetry,
  takeRetry,
  writeHasEndpoints,
  writeInitialization,
} from './application-store.ts'
import type { WebhookParts } from './parts.ts'
import { type PortalAccess, ProviderFailed, type WebhookProvider } from './provider.ts'
import { retryAfter } from './schedule.ts'

type Organization = { id: string; name: string }

const getProvider = ({ provider }: WebhookParts): WebhookProvider => {
  if (provider === undefined) throw new Problem('unavailable', 'This server has no webhook provider.')
  return provider
}

const isOf = (application: Application, provider: WebhookProvider | undefined) =>
  application.provider === provider?.kind

const asView = (application: Application, provider: WebhookProvider | undefined) => {
  const isCurrent = isOf(application, provider)
  const applicationId = isCurrent ? application.applicationId : null
  return {
    organizationId: application.organizationId,
    webhookProviderApplicationId: applicationId,
    // Clients expect the id of the application in a field of this name, even if the provider is not Svix.
    svixApplicationId: applicationId,
    lastError: isCurrent ? application.lastError : 'This server has another webhook provider now; initialize again.',
    retryCount: application.retryCount,
    createdAt: application.createdAt.toISOString(),
    updatedAt: application.updatedAt.toISOString(),
  }
}

export const viewStatus = async ({ database, provider }: WebhookParts, organizationId: string) => {
  const application = await findApplication(database.sql, organizationId)
  if (application === undefined) throw new Problem('not_found', 'Webhooks of this organization are not initialized.')
  return asView(application, provider)
}

const attempt = async (parts: WebhookParts, organization: Organization, attempts: number): Promise<Application> => {
  const { database, clock, log } = parts
  const provider = getProvider(parts)
  const key = { organizationId: organization.id, provider: provider.kind }
  try {
    const applicationId = await provider.initialize(organization)
    return await writeInitialization(database.sql, key, { applicationId }, clock.now())
  } catch (error) {
    if (!(error instanceof ProviderFailed)) throw error
    log.warn({ err: error, organizationId: organization.id }, 'webhooks could not be initialized')
    const retryAt = new Date(clock.now().getTime() + retryAfter(attempts) * 1000)
    return await writeInitialization(database.sql, key, { error: error.message, retryAt }, clock.now())
  }
}

export const initialize = async (parts: WebhookParts, organization: Organization) => {
  getProvider(parts)
  const known = await findApplication(parts.database.sql, organization.id)
  return asView(await attempt(parts, organization, known?.retryCount ?? 0), parts.provider)
}

/**
 * Returns the organization's application at the webhook provider, and makes the application if necessary. Throws if the provider
 * fails.
 */
export const ensureInitialized = async (
  parts: WebhookParts,
  organization: Organization,
): Promise<Application & { applicationId: string }> => {
  const provider = getProvider(parts)
  const known = await findApplication(parts.database.sql, organization.id)
  const isUsable = known !== undefined && isOf(known, provider) && known.applicationId !== null
  const application = isUsable ? known : await attempt(parts, organization, known?.retryCount ?? 0)
  const { applicationId, lastError } = application
  if (applicationId === null) throw new Problem('unavailable', `Webhooks could not be initialized: ${lastError}`)
  return { ...application, applicationId }
}

export const openPortal = async (
  parts: WebhookParts,
  { organization, user, keyHash }: Caller,
): Promise<PortalAccess> => {
  const { applicationId } = await ensureInitialized(parts, organization)
  const who = { organizationId: organization.id, userId: user.id, makerHash: keyHash ?? null }
  return await asked(getProvider(parts).openPortal(applicationId, who))
}

/**
 * Asks the webhook provider whether the organization has endpoints, and stores the answer. Throws 404 if the organization has no
 * application at the provider.
 */
export const refreshEndpoints = async (parts: WebhookParts, organizationId: string): Promise<void> => {
  const { database, clock } = parts
  const provider = getProvider(parts)
  const application = await findApplication(database.sql, organizationId)
  if (!application?.applicationId || !isOf(application, provider))
    throw new Problem('not_found', 'Webhooks of this organization are not initialized.')
  const hasEndpoints = await asked(provider.hasEndpoints(application.applicationId, organizationId))
  await writeHasEndpoints(database.sql, organizationId, hasEndpoints, clock.now())
}

const asked = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    if (error instanceof ProviderFailed) throw new Problem('unavailable', error.message, { cause: error })
    throw error
  }
}

/** Tries again to create applications at the webhook provider, where an earlier attempt has failed and the next attempt is due. */
export const retryInitializations = async (parts: WebhookParts): Promise<void> => {
  const { database, clock, provider } = parts
  if (provider === undefined) return
  const now = clock.now()
  for (const { organizationId, name, retryCount } of await listToRetry(database.sql, provider.kind, now)) {
    // `takeRetry` stores the time of the next attempt first. So only this process makes this attempt. If the process dies, another
    // process makes the next attempt.
    const next = new Date(now.getTime() + retryAfter(retryCount) * 1000)
    if (await takeRetry(database.sql, organizationId, now, next))
      await attempt(parts, { id: organizationId, name }, retryCount)
  }
}
