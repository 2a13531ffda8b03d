// The endpoint `/config`: the data that a client needs before it can sign in.
import Type from 'typebox'
import { previewTemplate } from '#src/control/access/preview-template.ts'
import { sshCommand } from '#src/control/access/ssh-access.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import { issuerUrl } from '../issuer/address.ts'
import type { Parts, Settings } from '../parts.ts'
import { pageForPeople } from '../settings/dashboard-url.ts'

const Rate = Type.Optional(Type.Object({ ttl: Type.Number(), limit: Type.Number() }))

const Configuration = Type.Object({
  version: Type.String(),
  oidc: Type.Object({ issuer: Type.String(), clientId: Type.String(), audience: Type.String() }),
  linkedAccountsEnabled: Type.Boolean(),
  announcements: Type.Record(
    Type.String(),
    Type.Object({ text: Type.String(), learnMoreUrl: Type.Optional(Type.String()) }),
  ),
  proxyTemplateUrl: Type.String(),
  proxyToolboxUrl: Type.String(),
  defaultSnapshot: Type.String(),
  dashboardUrl: Type.String(),
  maxAutoArchiveInterval: Type.Number(),
  maintananceMode: Type.Boolean(),
  environment: Type.String(),
  sshGatewayCommand: Type.Optional(Type.String()),
  sshGatewayPublicKey: Type.Optional(Type.String()),
  rateLimit: Type.Optional(
    Type.Object({ failedAuth: Rate, authenticated: Rate, sandboxCreate: Rate, sandboxLifecycle: Rate }),
  ),
})

/** Maximum minutes that a caller can set between the stop of a sandbox and its automatic archiving. */
const maxAutoArchiveInterval = 43_200

/** Returns the rate limits that the operator has set. Each allows `limit` calls in `ttl` seconds. */
const rateLimitOf = ({ rateLimits }: Settings) => {
  const shown = {
    failedAuth: rateLimits['failed-auth'],
    authenticated: rateLimits.authenticated,
    sandboxCreate: rateLimits['sandbox-create'],
    sandboxLifecycle: rateLimits['sandbox-lifecycle'],
  }
  const limited = Object.entries(shown).flatMap(([name, rate]) =>
    rate === undefined ? [] : [[name, { ttl: rate.ttlSeconds, limit: rate.limit }]],
  )
  return limited.length === 0 ? {} : { rateLimit: Object.fromEntries(limited) }
}

/**
 * Returns the SSH command for this server's SSH gateway, and the gateway's host key. Clients replace `{{TOKEN}}` in the
 * command.
 */
const sshGatewayOf = ({ sshGateway }: Settings) =>
  sshGateway === undefined
    ? {}
    : {
        sshGatewayCommand: sshCommand(sshGateway, '{{TOKEN}}'),
        sshGatewayPublicKey: Buffer.from(sshGateway.hostKey).toString('base64'),
      }

const configurationOf = (settings: Settings) => ({
  version: settings.version,
  oidc: {
    issuer: settings.identity.issuers[0] ?? issuerUrl(settings),
    clientId: settings.identity.clientId,
    audience: settings.identity.audience,
  },
  linkedAccountsEnabled: settings.identity.issuers.length > 0,
  announcements: {},
  proxyTemplateUrl: previewTemplate(settings.proxyUrl),
  proxyToolboxUrl: `${settings.proxyUrl}/toolbox`,
  defaultSnapshot: settings.defaultSnapshot,
  dashboardUrl: pageForPeople(settings),
  maxAutoArchiveInterval,
  maintananceMode: false, // the public API has this spelling mistake
  environment: settings.environment,
  ...sshGatewayOf(settings),
  ...rateLimitOf(settings),
})

export const configurationRoutes = ({ settings }: Pick<Parts, 'settings'>): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/config',
    needs: 'public',
    summary:
      'Returns the settings of this server that clients need, such as the sign-in issuer and the default snapshot.',
    replies: { 200: Configuration },
    run: () => configurationOf(settings),
  }),
]
