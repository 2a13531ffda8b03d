// The checks of a sign-in by an identity provider, in their order. A failed check throws a problem that names the reason.
import { Problem } from '#src/problems.ts'
import { readEmail, readText } from '../auth/claims.ts'
import { domainOf } from '../identity-providers/domain.ts'
import type { IdentityProvider } from '../identity-providers/identity-provider.ts'
import type { ProviderClaims } from './provider.ts'

/** A person whom an identity provider has signed in and whose e-mail address is accepted. */
export type Person = { subject: string; email: string; name: string }

export const requireEnabled = (provider: IdentityProvider | undefined): IdentityProvider => {
  if (provider === undefined || !provider.enabled) throw new Problem('sso_provider_disabled')
  return provider
}

export const requireEmail = ({ subject, email, name }: ProviderClaims): Person => {
  const address = readEmail(email)
  if (address === undefined) throw new Problem('sso_missing_email')
  return { subject, email: address, name: readText(name, 255) ?? address }
}

/** Returns whether the identity provider has verified the e-mail address. Some providers send `email_verified` as text. */
const isVerified = ({ emailVerified }: ProviderClaims): boolean => emailVerified === true || emailVerified === 'true'

export const requireVerifiedEmail = (provider: IdentityProvider, said: ProviderClaims): void => {
  if (!provider.trustEmailVerified && !isVerified(said)) throw new Problem('sso_email_not_verified')
}

export const matchDomain = (provider: IdentityProvider, { email }: Person): void => {
  if (provider.allowAnyDomain) return
  const domain = domainOf(email)
  if (domain === undefined || !provider.emailDomains.includes(domain)) throw new Problem('sso_domain_not_allowed')
}
