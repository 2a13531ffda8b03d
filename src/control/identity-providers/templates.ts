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
    notes: 'Name the domains of the workspace: with any domain allowed, every Google account may sign in.',
  }),
  template({
    id: 'microsoft-entra-id',
    name: 'Microsoft Entra ID',
    issuerUrl: 'https://login.microsoftonline.com/{tenantId}/v2.0',
    placeholders: { tenantId: 'The id of the directory. The shared issuers (common, organizations) are not accepted.' },
    trustEmailVerified: true,
    notes: 'It sends no email_verified. Let the application send the optional claim email.',
  }),
  template({
    id: 'okta',
    name: 'Okta',
    issuerUrl: 'https://{oktaDomain}',
    placeholders: { oktaDomain: 'The domain of the Okta organization, such as example.okta.com.' },
    trustEmailVerified: false,
    notes: 'With a custom authorization server the issuer is https://{oktaDomain}/oauth2/{serverId}.',
  }),
  template({
    id: 'auth0',
    name: 'Auth0',
    issuerUrl: 'https://{auth0Domain}',
    placeholders: { auth0Domain: 'The domain of the tenant, such as example.eu.auth0.com.' },
    trustEmailVerified: false,
    notes: 'Make a regular web application.',
  }),
  template({
    id: 'keycloak',
    name: 'Keycloak',
    issuerUrl: 'https://{host}/realms/{realm}',
    placeholders: { host: 'Where Keycloak is reached.', realm: 'The name of the realm.' },
    trustEmailVerified: false,
    notes:
      'Switch on client authentication for the client. In a private network the operator has to allow its address.',
  }),
  template({
    id: 'onelogin',
    name: 'OneLogin',
    issuerUrl: 'https://{subdomain}.onelogin.com/oidc/2',
    placeholders: { subdomain: 'The subdomain of the account.' },
    trustEmailVerified: true,
    notes: 'It sends no email_verified.',
  }),
  template({
    id: 'custom',
    name: 'OpenID Connect',
    issuerUrl: '{issuerUrl}',
    placeholders: { issuerUrl: 'Without /.well-known/openid-configuration, which is looked for below it.' },
    trustEmailVerified: false,
    notes: 'Any provider with discovery and the authorization code grant.',
  }),
]
