// Tells the telemetry collector where to send the telemetry of a sandbox. The collector asks with the sandbox's token.
import { Problem } from '#src/problems.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import type { OrganizationParts } from '../organizations/change.ts'
import { getOtelConfig } from '../organizations/otel-config.ts'
import { OtelConfigOfOrganization, SandboxToken } from '../organizations/schemas.ts'
import { findByPreviewToken } from './preview-tokens.ts'

const getOtelConfigOfSandbox = async (parts: OrganizationParts, token: string) => {
  const sandbox = await findByPreviewToken(parts.database.sql, token, parts.clock.now())
  if (sandbox === undefined) throw new Problem('not_found', 'There is no such sandbox.')
  const organizationId = sandbox.organization_id
  return { organizationId, ...(await getOtelConfig(parts, organizationId, { isCollector: true })) }
}

export const sandboxTelemetryRoutes = (parts: OrganizationParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/organizations/otel-config/by-sandbox-auth-token/:authToken',
    needs: 'collector',
    summary: 'Returns the telemetry endpoint and headers of the organization whose sandbox presents this token.',
    params: SandboxToken,
    replies: { 200: OtelConfigOfOrganization },
    run: ({ params }) => getOtelConfigOfSandbox(parts, params.authToken),
  }),
]
