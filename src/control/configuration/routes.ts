// `/config`: what a client must know before it can sign in (contract/control-plane.md §4).
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import type { Parts, Settings } from '../parts.ts'
import { previewTemplate } from './preview-template.ts'

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
})

/** Minutes: the longest that a stopped sandbox may wait before it is archived. */
const maxAutoArchiveInterval = 43_200

const configurationOf = (settings: Settings) => ({
  version: settings.version,
  oidc: {
    // Without an issuer keys are the only credential; clients want the field to be there.
    issuer: settings.identity.issuers[0] ?? settings.publicUrl,
    clientId: settings.identity.clientId,
    audience: settings.identity.audience,
  },
  linkedAccountsEnabled: settings.identity.issuers.length > 0,
  announcements: {},
  proxyTemplateUrl: previewTemplate(settings.proxyUrl),
  proxyToolboxUrl: `${settings.proxyUrl}/toolbox`,
  defaultSnapshot: settings.defaultSnapshot,
  dashboardUrl: settings.publicUrl,
  maxAutoArchiveInterval,
  maintananceMode: false, // the wire spells it so
  environment: settings.environment,
})

export const configurationRoutes = ({ settings }: Pick<Parts, 'settings'>): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/config',
    needs: 'public',
    summary: 'What a client must know about this server.',
    replies: { 200: Configuration },
    run: () => configurationOf(settings),
  }),
]
