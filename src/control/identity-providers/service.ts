// The rules of identity providers. A domain belongs to at most one provider of the server.
// A provider gets a domain only if a member's address in this domain was verified without single sign-on.
// The default roles of a provider cannot have a permission that the caller lacks.
import { randomUUID } from 'node:crypto'
import { lockMembership } from '#src/control/auth/change-membership.ts'
import type { Organization } from '#src/control/people/organization.ts'
import { Problem } from '#src/problems.ts'
import { checkHoldsAll } from '../auth/grant.ts'
import type { Caller } from '../auth/route.ts'
import { readDisplayText } from '../display-text.ts'
import { type Outbound, outboundOf } from '../outbound/outbound.ts'
import type { Parts } from '../parts.ts'
import { getAssignableRoles } from '../roles/service.ts'
import { isDuplicate, type Sql, type Transaction } from '../storage/database.ts'
import { checkIssuerUrl, DiscoveryFailed, discover } from './discover.ts'
import { domainOf, readDomains } from './domain.ts'
import { asProviderView, type IdentityProvider, secretPurpose, standardScope } from './identity-provider.ts'
import type { CreateIdentityProvider, UpdateIdentityProvider } from './schemas.ts'
import {
  countProviders,
  deleteProvider,
  findProvider,
  insertProvider,
  listProviders,
  listVerifiedDomains,
  writeProvider,
} from './store.ts'

export type IdentityProviderParts = Pick<Parts, 'database' | 'clock' | 'encryption' | 'settings'> & {
  outbound: Outbound
}

/** The caller, and the organization whose identity providers the caller manages. */
type Manager = { caller: Caller; organization: Organization }

const providersPerOrganization = 20

/** Whether single sign-on is enabled for the organization. */
export const hasSso = (
  { settings }: Pick<Parts, 'settings'>,
  { personal, ssoEnabled }: Pick<Organization, 'personal' | 'ssoEnabled'>,
): boolean => !personal && (ssoEnabled || settings.ssoForAll)

const checkAvailable = (parts: Pick<Parts, 'settings'>, organization: Organization): void => {
  if (organization.personal) throw new Problem('forbidden', 'A personal organization has no single sign-on.')
  if (!hasSso(parts, organization))
    throw new Problem('forbidden', 'Single sign-on is not enabled for this organization.')
}

const readScope = (given: string): string => {
  const words = given.split(' ').filter((word) => word !== '')
  // RFC 6749 §3.3 allows only these characters in a scope.
  if (words.some((word) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(word))) {
    throw new Problem('bad_request', 'oidcConfig.scope must hold words with spaces between')
  }
  if (!words.includes('openid')) throw new Problem('bad_request', 'oidcConfig.scope must contain openid')
  return [...new Set(words)].join(' ')
}

type Input = UpdateIdentityProvider

/** Returns the provider with the fields of the input. Fields that the input leaves out stay unchanged. */
const withInput = ({ encryption }: IdentityProviderParts, before: IdentityProvider, input: Input): IdentityProvider => {
  const { issuerUrl, clientId, clientSecret, scope } = input.oidcConfig ?? {}
  if (issuerUrl !== undefined) checkIssuerUrl(issuerUrl)
  return {
    ...before,
    name: input.name === undefined ? before.name : readDisplayText('name', input.name),
    issuerUrl: issuerUrl ?? before.issuerUrl,
    clientId: clientId ?? before.clientId,
    sealedSecret:
      clientSecret === undefined ? before.sealedSecret : encryption.encrypt(secretPurpose(before), clientSecret),
    scope: scope === undefined ? before.scope : readScope(scope),
    emailDomains: input.emailDomains === undefined ? before.emailDomains : readDomains(input.emailDomains),
    allowAnyDomain: input.allowAnyDomain ?? before.allowAnyDomain,
    trustEmailVerified: input.trustEmailVerified ?? before.trustEmailVerified,
    defaultAssignedRoleIds: [...new Set(input.defaultAssignedRoleIds ?? before.defaultAssignedRoleIds)],
    enabled: input.enabled ?? before.enabled,
  }
}

/** Whether a change of a provider affects who can sign in through it, or which roles new users get. */
const letsIn = ({ name: _name, enabled, ...rest }: Input): boolean =>
  enabled === true || Object.values(rest).some((value) => value !== undefined)

const checkRoles = async (sql: Sql, caller: Caller, provider: IdentityProvider): Promise<void> => {
  const roles = await getAssignableRoles(sql, provider.organizationId, provider.defaultAssignedRoleIds)
  checkHoldsAll(
    caller,
    roles.flatMap(({ permissions }) => permissions),
  )
}

const checkDomains = async (sql: Sql, provider: IdentityProvider, claimed: readonly string[]): Promise<void> => {
  if (provider.emailDomains.length === 0 && !provider.allowAnyDomain) {
    throw new Problem('bad_request', 'emailDomains must hold a domain unless allowAnyDomain is true')
  }
  const added = provider.emailDomains.filter((domain) => !claimed.includes(domain))
  if (added.length === 0) return
  const proven = new Set((await listVerifiedDomains(sql, provider.organizationId)).map(domainOf))
  const unproven = added.find((domain) => !proven.has(domain))
  if (unproven !== undefined) {
    throw new Problem('domain_unverified', `No member of the organization has a verified address at ${unproven}.`)
  }
}

/**
 * Runs `work`, which may give an e-mail domain to a provider. A provider gets a domain only if a member has a verified address in
 * the domain. Because of a lock, no member can leave the organization until `work` has ended.
 */
const inTurn = async <T>(
  { database }: Pick<Parts, 'database'>,
  organizationId: string,
  work: (sql: Transaction) => Promise<T>,
): Promise<T> => {
  try {
    return await database.transaction(async (sql) => {
      await lockMembership(sql, organizationId)
      return await work(sql)
    })
  } catch (error) {
    if (isDuplicate(error)) throw new Problem('domain_taken', undefined, { cause: error })
    throw error
  }
}

export const createProvider = async (
  parts: IdentityProviderParts,
  { caller, organization }: Manager,
  input: CreateIdentityProvider,
) => {
  checkAvailable(parts, organization)
  const now = parts.clock.now()
  const nothing: IdentityProvider = {
    id: randomUUID(),
    organizationId: organization.id,
    name: '',
    issuerUrl: '',
    clientId: '',
    sealedSecret: '',
    scope: standardScope,
    emailDomains: [],
    allowAnyDomain: false,
    trustEmailVerified: false,
    defaultAssignedRoleIds: [],
    enabled: true,
    createdAt: now,
    updatedAt: now,
  }
  const provider = withInput(parts, nothing, input)
  await inTurn(parts, organization.id, async (sql) => {
    if ((await countProviders(sql, organization.id)) >= providersPerOrganization) {
      throw new Problem('forbidden', `An organization can have at most ${providersPerOrganization} identity providers.`)
    }
    await checkRoles(sql, caller, provider)
    await checkDomains(sql, provider, [])
    await insertProvider(sql, provider)
  })
  return asProviderView(provider)
}

export const updateProvider = async (
  parts: IdentityProviderParts,
  { caller, organization }: Manager,
  id: string,
  input: UpdateIdentityProvider,
) => {
  checkAvailable(parts, organization)
  const provider = await inTurn(parts, organization.id, async (sql) => {
    const before = await getProvider(sql, organization.id, id)
    const after = { ...withInput(parts, before, input), updatedAt: parts.clock.now() }
    if (letsIn(input)) await checkRoles(sql, caller, after)
    await checkDomains(sql, after, before.emailDomains)
    await writeProvider(sql, after)
    return after
  })
  return asProviderView(provider)
}

const getProvider = async (sql: Sql, organizationId: string, id: string): Promise<IdentityProvider> => {
  const provider = await findProvider(sql, organizationId, id)
  if (provider === undefined) throw new Problem('not_found', 'There is no such identity provider.')
  return provider
}

export const listProviderViews = async (parts: IdentityProviderParts, { organization }: Manager) => {
  checkAvailable(parts, organization)
  return (await listProviders(parts.database.sql, organization.id)).map(asProviderView)
}

export const getProviderView = async (parts: IdentityProviderParts, { organization }: Manager, id: string) => {
  checkAvailable(parts, organization)
  return asProviderView(await getProvider(parts.database.sql, organization.id, id))
}

/** Deletes a provider. Other providers may then get its domains. Users who became members through the provider stay members. */
export const removeProvider = async (
  parts: IdentityProviderParts,
  { organization }: Manager,
  id: string,
): Promise<void> => {
  checkAvailable(parts, organization)
  if (!(await deleteProvider(parts.database.sql, organization.id, id))) {
    throw new Problem('not_found', 'There is no such identity provider.')
  }
}

/**
 * Tests whether the discovery document of a provider can be read. If it cannot, returns `success: false` with the
 * reason.
 */
export const testConnection = async (
  parts: IdentityProviderParts,
  { organization }: Manager,
  { issuerUrl }: { issuerUrl: string },
): Promise<{ success: boolean; issuer?: string; error?: string }> => {
  checkAvailable(parts, organization)
  checkIssuerUrl(issuerUrl)
  try {
    const { issuer } = await discover(outboundOf(parts.outbound, organization.id), issuerUrl)
    return { success: true, issuer }
  } catch (error) {
    if (error instanceof DiscoveryFailed) return { success: false, error: error.message }
    throw error
  }
}

/** Lists all providers of the organization, oldest first. Called when a user signs in with single sign-on. */
export const listProvidersOf = async ({ database }: Pick<Parts, 'database'>, organizationId: string) =>
  await listProviders(database.sql, organizationId)

export const findProviderOf = async (sql: Sql, organizationId: string, id: string) =>
  await findProvider(sql, organizationId, id)
