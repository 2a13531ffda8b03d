// An identity provider of an organization as control stores it, and as the API shows it.
export const standardScope = 'openid email profile'

export type IdentityProviderRow = {
  id: string
  organization_id: string
  name: string
  issuer_url: string
  client_id: string
  client_secret: string
  scope: string
  allow_any_domain: boolean
  trust_email_verified: boolean
  enabled: boolean
  domains: string[]
  role_ids: string[]
  created_at: Date
  updated_at: Date
}

export type IdentityProvider = {
  id: string
  organizationId: string
  name: string
  issuerUrl: string
  clientId: string
  /** The client secret of the provider, encrypted. */
  sealedSecret: string
  scope: string
  emailDomains: string[]
  allowAnyDomain: boolean
  trustEmailVerified: boolean
  defaultAssignedRoleIds: string[]
  enabled: boolean
  createdAt: Date
  updatedAt: Date
}

export const readProvider = (row: IdentityProviderRow): IdentityProvider => ({
  id: row.id,
  organizationId: row.organization_id,
  name: row.name,
  issuerUrl: row.issuer_url,
  clientId: row.client_id,
  sealedSecret: row.client_secret,
  scope: row.scope,
  emailDomains: row.domains,
  allowAnyDomain: row.allow_any_domain,
  trustEmailVerified: row.trust_email_verified,
  defaultAssignedRoleIds: row.role_ids,
  enabled: row.enabled,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

/**
 * Returns the text that binds an encrypted client secret to its provider. In another provider's row, a copy of the secret is
 * unreadable.
 */
export const secretPurpose = ({ id }: Pick<IdentityProvider, 'id'>) => `identity-provider:${id}`

/** Returns the provider as the API shows it. Every field is listed by name, so that the secret is never shown. */
export const asProviderView = (provider: IdentityProvider) => ({
  id: provider.id,
  organizationId: provider.organizationId,
  name: provider.name,
  oidcConfig: { issuerUrl: provider.issuerUrl, clientId: provider.clientId, scope: provider.scope },
  emailDomains: provider.emailDomains,
  allowAnyDomain: provider.allowAnyDomain,
  trustEmailVerified: provider.trustEmailVerified,
  defaultAssignedRoleIds: provider.defaultAssignedRoleIds,
  enabled: provider.enabled,
  createdAt: provider.createdAt.toISOString(),
  updatedAt: provider.updatedAt.toISOString(),
})
