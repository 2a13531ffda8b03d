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
    summary: 'Nothing is set going there any more, for ever or until a date; after the grace what runs is stopped.',
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
    summary: 'Lifts a suspension.',
    params: OrganizationId,
    replies: { 204: null },
    run: ({ params }) => unsuspend(parts, params.organizationId),
  }),
  route({
    method: 'POST',
    path: '/organizations/:organizationId/sandbox-default-limited-network-egress',
    needs: 'admin',
    summary: 'Whether new sandboxes reach nothing outside unless they say so.',
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
    summary: 'Whether visitors of previews are warned first.',
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
    summary: 'Whether its members may sign in by identity providers of its own.',
    params: OrganizationId,
    body: SsoEnabled,
    replies: { 204: null },
    run: ({ params, body }) => setSwitch(parts, params.organizationId, 'sso_enabled', body.ssoEnabled),
  }),
]
