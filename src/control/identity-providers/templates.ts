// Settings of widely used identity providers. All of them support sign-in by authorization code and client secret.
import type { Static } from 'typebox'
import { standardScope } from './identity-provider.ts'
import type { ProviderTemplate } from './schemas.ts'

type Template = Static<typeof ProviderTemplate>

const template = (row: Omit<Template, 'scope'>): Template => ({ ...row, scope: standardScope })

export const templates: readonly Template[] = [
  template({
    id: 'google-workspace',
    name: 'Google Workspace',
    issuerUrl: 'https://accounts.google.com',
    placeholders: {},
    trustEmailVerified: false,
    notes:
      'Enter the e-mail domains of your workspace. If any domain is allowed, everybody with a Google account can sign in.',
  }),
  template({
    id: 'microsoft-entra-id',
    name: 'Microsoft Entra ID',
    issuerUrl: 'https://login.microsoftonline.com/{tenantId}/v2.0',
    placeholders: {
      tenantId: 'The directory (tenant) ID. The shared issuers (common, organizations) are not accepted.',
    },
    trustEmailVerified: true,
    notes: 'Microsoft does not send the claim email_verified. In the app registration, add the optional claim email.',
  }),
  template({
    id: 'okta',
    name: 'Okta',
    issuerUrl: 'https://{oktaDomain}',
    placeholders: { oktaDomain: 'The domain of the Okta organization, such as example.okta.com.' },
    trustEmailVerified: false,
    notes: 'If you use a custom authorization server, the issuer is https://{oktaDomain}/oauth2/{serverId}.',
  }),
  template({
    id: 'auth0',
    name: 'Auth0',
    issuerUrl: 'https://{auth0Domain}',
    placeholders: { auth0Domain: 'The domain of the tenant, such as example.eu.auth0.com.' },
    trustEmailVerified: false,
    notes: 'In Auth0, create an application of the type Regular Web Application.',
  }),
  template({
    id: 'keycloak',
    name: 'Keycloak',
    issuerUrl: 'https://{host}/realms/{realm}',
    placeholders: {
      host: 'The host name of the Keycloak server, such as keycloak.example.com.',
      realm: 'The name of the Keycloak realm.',
    },
    trustEmailVerified: false,
    notes:
      'In Keycloak, turn on client authentication for the client. If Keycloak is in a private network, the operator of this server must allow its address.',
  }),
  template({
    id: 'onelogin',
    name: 'OneLogin',
    issuerUrl: 'https://{subdomain}.onelogin.com/oidc/2',
    placeholders: { subdomain: 'The subdomain of your OneLogin account.' },
    trustEmailVerified: true,
    notes: 'OneLogin does not send the claim email_verified.',
  }),
  template({
    id: 'custom',
    name: 'OpenID Connect',
    issuerUrl: '{issuerUrl}',
    placeholders: { issuerUrl: 'The URL of the issuer, without /.well-known/openid-configuration at its end.' },
    trustEmailVerified: false,
    notes: 'Any provider that supports OpenID Connect Discovery and the authorization code grant.',
  }),
]
