// Signing in to an organization through its own identity provider, from the first redirect to a session.
import * as oidc from 'openid-client'
import { networkOf } from '#src/kit/network-of.ts'
import { Problem } from '#src/problems.ts'
import type { Origin } from '../audit/subject.ts'
import type { OwnTokens } from '../auth/own-tokens.ts'
import { hashKey } from '../auth/secret.ts'
import type { IdentityProvider } from '../identity-providers/identity-provider.ts'
import { findProviderOf, hasSso, listProvidersOf } from '../identity-providers/service.ts'
import { findOrganization } from '../organizations/service.ts'
import type { Parts } from '../parts.ts'
import { siteGroups } from '../rate-limits/address-key.ts'
import { type AccountParts, findOrAdmit } from './accounts.ts'
import { attemptSeconds, newSecret } from './browser.ts'
import { authorizationUrl, exchangeCode, type ProviderParts } from './provider.ts'
import { matchDomain, requireEmail, requireEnabled, requireVerifiedEmail } from './steps.ts'
import { type Attempt, insertAttempt, takeAttempt } from './store.ts'

export type SsoParts = AccountParts & ProviderParts & Pick<Parts, 'settings' | 'log'> & { ownTokens: OwnTokens }

export type Session = {
  accessToken: string
  tokenType: 'Bearer'
  expiresAt: string
  userId: string
  organizationId: string
}

export const callbackPath = '/auth/sso/callback'

/** The callback URI. The URI must be registered at the identity provider exactly like this. */
const redirectUriOf = ({ settings }: Pick<Parts, 'settings'>) => `${settings.publicUrl}/api${callbackPath}`

/**
 * Finds the identity provider of a sign-in. Callers get the same error for an unknown organization and for an organization without
 * a provider.
 */
const requireProvider = async (
  parts: SsoParts,
  organizationId: string,
  providerId: string | undefined,
): Promise<IdentityProvider> => {
  const all = await listProvidersOf(parts, organizationId)
  const named = providerId === undefined ? all : all.filter(({ id }) => id === providerId)
  if (named.length === 0) throw new Problem('not_found', 'This organization has no single sign-on.')
  await requireEntitled(parts, organizationId)
  return requireEnabled(named.find(({ enabled }) => enabled))
}

const requireEntitled = async (parts: SsoParts, organizationId: string): Promise<void> => {
  const organization = await findOrganization(parts.database.sql, organizationId)
  if (organization === undefined || !hasSso(parts, organization)) throw new Problem('sso_provider_disabled')
}

type Begin = { organizationId: string; providerId: string | undefined; browserSecret: string; address: string }

/** Begins a single sign-on. Returns the URL of the identity provider to which the browser is redirected. */
export const beginSignIn = async (
  parts: SsoParts,
  { organizationId, providerId, browserSecret, address }: Begin,
): Promise<string> => {
  const provider = await requireProvider(parts, organizationId, providerId)
  const state = newSecret()
  const asked = { nonce: newSecret(), codeVerifier: oidc.randomPKCECodeVerifier() }
  const url = await authorizationUrl(parts, provider, { ...asked, state, redirectUri: redirectUriOf(parts) })
  const now = parts.clock.now()
  await insertAttempt(
    parts.database.sql,
    { stateHash: hashKey(state), browserHash: hashKey(browserSecret) },
    { ...asked, identityProviderId: provider.id, issuerUrl: provider.issuerUrl },
    { now, expiresAt: new Date(now.getTime() + attemptSeconds * 1000), source: networkOf(address, siteGroups) },
  )
  return url
}

type Return = { state: string | undefined; search: string; browserSecret: string | undefined }

const requireAttempt = async (parts: SsoParts, { state, browserSecret }: Return): Promise<Attempt> => {
  if (state === undefined || browserSecret === undefined) throw new Problem('sso_invalid_state')
  const keys = { stateHash: hashKey(state), browserHash: hashKey(browserSecret) }
  const attempt = await takeAttempt(parts.database.sql, keys, parts.clock.now())
  if (attempt === undefined) throw new Problem('sso_invalid_state')
  return attempt
}

/** Reads the identity provider again when the browser comes back. Refuses the sign-in if the provider's issuer has changed. */
const requireSameProvider = async (parts: SsoParts, attempt: Attempt): Promise<IdentityProvider> => {
  const { organizationId, identityProviderId, issuerUrl } = attempt
  await requireEntitled(parts, organizationId)
  const provider = requireEnabled(await findProviderOf(parts.database.sql, organizationId, identityProviderId))
  if (provider.issuerUrl !== issuerUrl) throw new Problem('sso_invalid_state')
  return provider
}

export const completeSignIn = async (parts: SsoParts, returned: Return, from: Origin): Promise<Session> => {
  const attempt = await requireAttempt(parts, returned)
  const provider = await requireSameProvider(parts, attempt)
  const currentUrl = new URL(`${redirectUriOf(parts)}${returned.search}`)
  const said = await exchangeCode(parts, provider, { ...attempt, currentUrl, state: returned.state! })
  const person = requireEmail(said)
  requireVerifiedEmail(provider, said)
  matchDomain(provider, person)
  const user = await findOrAdmit(parts, provider, person, from)
  const { accessToken, expiresAt } = await parts.ownTokens.issue(user)
  return {
    accessToken,
    tokenType: 'Bearer',
    expiresAt: expiresAt.toISOString(),
    userId: user.id,
    organizationId: provider.organizationId,
  }
}
