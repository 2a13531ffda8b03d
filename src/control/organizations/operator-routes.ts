// The endpoints for settings of an organization that only the operator of the server may change.
import { OrganizationId } from '#src/control/people/schemas.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import type { OrganizationParts } from './change.ts'
import { LimitedEgress, PreviewWarning, SsoEnabled, Suspension } from './schemas.ts'
import { setSwitch, suspend, unsuspend } from './settings.ts'

export const organizationOperatorRoutes = (parts: OrganizationParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: '/organizations/:organizationId/suspend',
    needs: 'admin',
    summary:
      'Suspends an organization indefinitely or until a date. Nothing new can start; running sandboxes are stopped after a grace period.',
    params: OrganizationId,
    body: Suspension,
    bodyOptional: true,
    replies: { 204: null },
    run: ({ params, body }) => suspend(parts, params.organizationId, body),
  }),
  route({
    method: 'POST',
    path: '/organizations/:organizationId/unsuspend',
    needs: 'admin',
    summary: 'Ends the suspension of an organization.',
    params: OrganizationId,
    replies: { 204: null },
    run: ({ params }) => unsuspend(parts, params.organizationId),
  }),
  route({
    method: 'POST',
    path: '/organizations/:organizationId/sandbox-default-limited-network-egress',
    needs: 'admin',
    summary:
      'Sets whether new sandboxes have no outgoing network access by default. A create request can override this.',
    params: OrganizationId,
    body: LimitedEgress,
    replies: { 204: null },
    run: ({ params, body }) =>
      setSwitch(
        parts,
        params.organizationId,
        'sandbox_limited_network_egress',
        body.sandboxDefaultLimitedNetworkEgress,
      ),
  }),
  route({
    method: 'POST',
    path: '/organizations/:organizationId/preview-warning',
    needs: 'admin',
    summary: 'Sets whether visitors see a warning page before the organization’s previews.',
    params: OrganizationId,
    body: PreviewWarning,
    replies: { 204: null },
    run: ({ params, body }) =>
      setSwitch(parts, params.organizationId, 'preview_warning_enabled', body.previewWarningEnabled),
  }),
  route({
    method: 'POST',
    path: '/organizations/:organizationId/sso-enabled',
    needs: 'admin',
    summary: 'Sets whether the organization’s members may sign in with its own identity providers.',
    params: OrganizationId,
    body: SsoEnabled,
    replies: { 204: null },
    run: ({ params, body }) => setSwitch(parts, params.organizationId, 'sso_enabled', body.ssoEnabled),
  }),
]
