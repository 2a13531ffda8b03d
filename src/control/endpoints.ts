// Every endpoint of control. The server, the reference pages and the tests of all endpoints use this table.

import { accessRoutes } from './access/access.ts'
import type { GateParts } from './access/gate-links.ts'
import { previewQuestionRoutes } from './access/preview-questions.ts'
import { previewRoutes } from './access/preview-routes.ts'
import { sshRoutes } from './access/ssh-routes.ts'
import { sandboxTelemetryRoutes } from './access/telemetry.ts'
import { variableRoutes } from './access/variables.ts'
import { apiKeyRoutes } from './api-keys/routes.ts'
import { auditRoutes } from './audit/routes.ts'
import type { Trail } from './audit/trail.ts'
import type { OwnTokens } from './auth/own-tokens.ts'
import type { ControlRoute } from './auth/route.ts'
import { openApiRoutes } from './configuration/openapi-routes.ts'
import { configurationRoutes } from './configuration/routes.ts'
import { healthRoutes } from './health/routes.ts'
import type { Hosts } from './hosts/connections.ts'
import { hostRoutes } from './hosts/routes.ts'
import { identityProviderRoutes } from './identity-providers/routes.ts'
import { invitationRoutes } from './invitations/routes.ts'
import { accountRoutes } from './issuer/routes.ts'
import type { Outbox } from './mail/outbox.ts'
import { mcpRoutes } from './mcp/routes.ts'
import { memberRoutes } from './members/routes.ts'
import { meterRoutes } from './meters/routes.ts'
import type { Metrics } from './metrics/metrics.ts'
import { metricsRoutes } from './metrics/routes.ts'
import { objectStorageRoutes } from './object-storage/routes.ts'
import { organizationOperatorRoutes } from './organizations/operator-routes.ts'
import { organizationRoutes } from './organizations/routes.ts'
import type { Outbound } from './outbound/outbound.ts'
import { quotaRoutes } from './quotas/routes.ts'
import { regionRoutes } from './regions/routes.ts'
import { registryRoutes } from './registries/routes.ts'
import { roleRoutes } from './roles/routes.ts'
import { runnerRoutes } from './runner-link/routes.ts'
import { buildLogRoutes } from './sandboxes/build-log-routes.ts'
import { sandboxRoutes } from './sandboxes/routes.ts'
import { secretRoutes } from './secrets/routes.ts'
import { snapshotRoutes } from './snapshots/routes.ts'
import { ssoRoutes } from './sso/routes.ts'
import type { Database } from './storage/database.ts'
import { userRoutes } from './users/routes.ts'
import { volumeRoutes } from './volumes/routes.ts'
import { warmPoolRoutes } from './warm-pools/routes.ts'
import type { WebhookParts } from './webhooks/parts.ts'
import { webhookRoutes } from './webhooks/routes.ts'

export type EndpointParts = GateParts &
  WebhookParts & {
    outbound: Outbound
    outbox: Outbox
    metrics: Metrics
    ownTokens: OwnTokens
    trail: Pick<Trail, 'settled'>
    /**
     * The authority that signs certificates of other machines, and their connections. Undefined if control has no port for them.
     */
    hosts: Hosts | undefined
  }

/**
 * Returns the parts for modules that mostly read one sandbox or runner. In their pool `keyed`, PostgreSQL plans a query once
 * per connection. Modules that list many rows need the normal pool. In that pool, PostgreSQL plans a query for its actual
 * values, at least the first five times.
 */
const byKey = <P extends { database: Database }>(parts: P): P => ({
  ...parts,
  database: { ...parts.database, ...parts.database.keyed },
})

const described = (parts: EndpointParts): ControlRoute[] => [
  ...healthRoutes(parts),
  ...configurationRoutes(parts),
  ...regionRoutes(parts),
  ...userRoutes(parts),
  ...accountRoutes(parts),
  ...organizationRoutes(parts),
  ...sandboxTelemetryRoutes(parts),
  ...roleRoutes(parts),
  ...memberRoutes(parts),
  ...organizationOperatorRoutes(parts),
  ...quotaRoutes(parts),
  ...identityProviderRoutes(parts),
  ...invitationRoutes(parts),
  ...ssoRoutes(parts),
  ...apiKeyRoutes(parts),
  ...auditRoutes(parts),
  ...registryRoutes(parts),
  ...secretRoutes(parts),
  ...snapshotRoutes(parts),
  ...buildLogRoutes(parts),
  ...objectStorageRoutes(parts),
  ...volumeRoutes(parts),
  ...warmPoolRoutes(parts),
  ...sandboxRoutes(byKey(parts)),
  ...meterRoutes(parts),
  ...previewQuestionRoutes(parts),
  ...previewRoutes(byKey(parts)),
  ...sshRoutes(byKey(parts)),
  ...accessRoutes(byKey(parts)),
  ...variableRoutes(byKey(parts)),
  ...runnerRoutes(byKey(parts)),
  ...hostRoutes(parts),
  ...webhookRoutes(parts),
  ...metricsRoutes(parts),
  ...mcpRoutes(parts),
]

export const endpoints = (parts: EndpointParts): ControlRoute[] => {
  const routes = described(parts)
  return [...routes, ...openApiRoutes(routes)]
}
