// The target type and the action of each audited call, as the public API names them. The database stores only the call.
import type { AuditEntry } from './schemas.ts'

export const targetTypes = [
  ...['api_key', 'organization', 'organization_invitation', 'organization_role', 'organization_user'],
  ...['docker_registry', 'runner', 'sandbox', 'snapshot', 'user', 'volume', 'warm_pool', 'region', 'secret', 'other'],
  'identity_provider',
] as const

type Scenario = readonly [targetType: string, action: string]

const organization = '/organizations/{organizationId}'
const sandbox = '/sandbox/{sandboxIdOrName}'
const webhooks = `/webhooks${organization}`

/** Target type and action of each call that leaves an audit row. A test compares the keys with the endpoints. */
const scenarios: Readonly<Record<string, Scenario>> = {
  'POST /api-keys': ['api_key', 'create'],
  'DELETE /api-keys/{name}': ['api_key', 'delete'],
  'DELETE /api-keys/{userId}/{name}': ['api_key', 'delete'],

  'POST /organizations': ['organization', 'create'],
  [`DELETE ${organization}`]: ['organization', 'delete'],
  [`PATCH ${organization}/default-region`]: ['organization', 'update'],
  [`PUT ${organization}/experimental-config`]: ['organization', 'update'],
  [`PUT ${organization}/otel-config`]: ['organization', 'update_otel_config'],
  [`DELETE ${organization}/otel-config`]: ['organization', 'delete_otel_config'],
  [`POST ${organization}/leave`]: ['organization', 'leave_organization'],
  [`POST ${organization}/suspend`]: ['organization', 'suspend'],
  [`POST ${organization}/unsuspend`]: ['organization', 'unsuspend'],
  [`POST ${organization}/sandbox-default-limited-network-egress`]: [
    'organization',
    'update_sandbox_default_limited_network_egress',
  ],
  [`POST ${organization}/preview-warning`]: ['organization', 'update_preview_warning'],
  [`POST ${organization}/sso-enabled`]: ['organization', 'update_sso_enabled'],
  [`PATCH ${organization}/quota`]: ['organization', 'update_quota'],
  [`PATCH ${organization}/quota/{regionId}`]: ['organization', 'update_region_quota'],
  [`POST ${webhooks}/initialize`]: ['organization', 'initialize_webhooks'],
  [`POST ${webhooks}/endpoints/{endpointId}/messages/{messageId}/resend`]: ['organization', 'send_webhook_message'],

  [`POST ${organization}/invitations`]: ['organization_invitation', 'create'],
  [`PUT ${organization}/invitations/{invitationId}`]: ['organization_invitation', 'update'],
  [`POST ${organization}/invitations/{invitationId}/cancel`]: ['organization_invitation', 'delete'],
  'POST /organizations/invitations/{invitationId}/accept': ['organization_invitation', 'accept'],
  'POST /organizations/invitations/{invitationId}/decline': ['organization_invitation', 'decline'],

  [`POST ${organization}/roles`]: ['organization_role', 'create'],
  [`PUT ${organization}/roles/{roleId}`]: ['organization_role', 'update'],
  [`DELETE ${organization}/roles/{roleId}`]: ['organization_role', 'delete'],

  [`POST ${organization}/users/{userId}/access`]: ['organization_user', 'update_access'],
  [`DELETE ${organization}/users/{userId}`]: ['organization_user', 'delete'],
  'GET /auth/sso/callback': ['organization_user', 'create'],

  [`POST ${organization}/identity-providers`]: ['identity_provider', 'create'],
  [`POST ${organization}/identity-providers/test-connection`]: ['identity_provider', 'read'],
  [`PATCH ${organization}/identity-providers/{id}`]: ['identity_provider', 'update'],
  [`DELETE ${organization}/identity-providers/{id}`]: ['identity_provider', 'delete'],

  'POST /admin/users': ['user', 'create'],
  'POST /admin/users/password': ['user', 'change_password'],
  'POST /admin/users/link': ['user', 'create_sign_in_link'],
  'GET /oidc/interaction': ['user', 'sign_in_by_link'],
  'POST /users/linked-accounts': ['user', 'link_account'],
  'DELETE /users/linked-accounts/{provider}/{providerUserId}': ['user', 'unlink_account'],
  'POST /users/mfa/sms/enroll': ['user', 'update'],
  'POST /users/me/pending-sso-links/{id}/confirm': ['user', 'link_account'],
  'DELETE /users/me/pending-sso-links/{id}': ['user', 'unlink_account'],

  'PATCH /shared-regions/{id}': ['region', 'update_saving'],
  'POST /regions': ['region', 'create'],
  'PATCH /regions/{id}': ['region', 'update'],
  'DELETE /regions/{id}': ['region', 'delete'],
  'POST /regions/{id}/regenerate-proxy-api-key': ['region', 'regenerate_proxy_api_key'],
  'POST /regions/{id}/regenerate-ssh-gateway-api-key': ['region', 'regenerate_ssh_gateway_api_key'],
  'POST /regions/{id}/regenerate-snapshot-manager-credentials': ['region', 'regenerate_snapshot_manager_credentials'],

  'POST /runners': ['runner', 'create'],
  'POST /runners/{runnerId}/token': ['runner', 'regenerate_token'],
  'PATCH /runners/{runnerId}/scheduling': ['runner', 'update_scheduling'],
  'POST /runners/{runnerId}/lost': ['runner', 'give_up'],
  'DELETE /runners/{runnerId}': ['runner', 'delete'],

  'POST /docker-registry': ['docker_registry', 'create'],
  'PATCH /docker-registry/{id}': ['docker_registry', 'update'],
  'DELETE /docker-registry/{id}': ['docker_registry', 'delete'],

  'POST /snapshots': ['snapshot', 'create'],
  'DELETE /snapshots/{idOrName}': ['snapshot', 'delete'],
  'POST /snapshots/{idOrName}/activate': ['snapshot', 'activate'],
  'POST /snapshots/{idOrName}/deactivate': ['snapshot', 'deactivate'],

  'POST /secret': ['secret', 'create'],
  'PATCH /secret/{secretId}': ['secret', 'update'],
  'DELETE /secret/{secretId}': ['secret', 'delete'],

  'POST /volumes': ['volume', 'create'],
  'DELETE /volumes/{volumeId}': ['volume', 'delete'],

  'POST /warm-pools': ['warm_pool', 'create'],
  'PATCH /warm-pools/{warmPoolId}': ['warm_pool', 'update'],
  'DELETE /warm-pools/{warmPoolId}': ['warm_pool', 'delete'],

  'POST /sandbox': ['sandbox', 'create'],
  [`DELETE ${sandbox}`]: ['sandbox', 'delete'],
  [`POST ${sandbox}/start`]: ['sandbox', 'start'],
  [`POST ${sandbox}/stop`]: ['sandbox', 'stop'],
  [`POST ${sandbox}/pause`]: ['sandbox', 'pause'],
  [`POST ${sandbox}/resize`]: ['sandbox', 'resize'],
  [`POST ${sandbox}/archive`]: ['sandbox', 'archive'],
  [`POST ${sandbox}/snapshot`]: ['sandbox', 'snapshot'],
  [`POST ${sandbox}/fork`]: ['sandbox', 'fork'],
  'POST /sandbox/{sandboxId}/evict': ['sandbox', 'spot_evict'],
  [`POST ${sandbox}/recover`]: ['sandbox', 'recover'],
  [`POST ${sandbox}/backup`]: ['sandbox', 'create_backup'],
  [`PUT ${sandbox}/labels`]: ['sandbox', 'replace_labels'],
  [`POST ${sandbox}/network-settings`]: ['sandbox', 'update_network_settings'],
  [`PUT ${sandbox}/secrets`]: ['sandbox', 'update_secrets'],
  [`POST ${sandbox}/public/{isPublic}`]: ['sandbox', 'update_public_status'],
  [`POST ${sandbox}/autostop/{interval}`]: ['sandbox', 'set_auto_stop_interval'],
  [`POST ${sandbox}/autopause/{interval}`]: ['sandbox', 'set_auto_pause_interval'],
  [`POST ${sandbox}/autoarchive/{interval}`]: ['sandbox', 'set_auto_archive_interval'],
  [`POST ${sandbox}/autodelete/{interval}`]: ['sandbox', 'set_auto_delete_interval'],
  [`POST ${sandbox}/ttl/{ttlMinutes}`]: ['sandbox', 'set_ttl'],
  [`POST ${sandbox}/signing-key/rotate`]: ['sandbox', 'rotate_signing_key'],
  [`POST ${sandbox}/ssh-access`]: ['sandbox', 'create_ssh_access'],
  [`DELETE ${sandbox}/ssh-access`]: ['sandbox', 'revoke_ssh_access'],
  [`GET ${sandbox}/ports/{port}/signed-preview-url`]: ['sandbox', 'get_port_preview_url'],
  [`POST ${sandbox}/ports/{port}/signed-preview-url/{token}/expire`]: ['sandbox', 'update'],

  'GET /object-storage/push-access': ['other', 'create'],
  [`POST ${webhooks}/app-portal-access`]: ['other', 'create'],
  [`POST ${webhooks}/refresh-endpoints`]: ['other', 'update'],
  [`POST ${webhooks}/endpoints`]: ['other', 'create'],
  [`PATCH ${webhooks}/endpoints/{endpointId}`]: ['other', 'update'],
  [`DELETE ${webhooks}/endpoints/{endpointId}`]: ['other', 'delete'],
  [`POST ${webhooks}/endpoints/{endpointId}/rotate-secret`]: ['other', 'update'],
}

export const auditedCalls: readonly string[] = Object.keys(scenarios)

/**
 * Returns the target type and action of a call. If this version does not have the call, they are `other` and `update`.
 */
export const scenarioOf = (call: string): Pick<AuditEntry, 'targetType' | 'action'> => {
  const [targetType, action] = scenarios[call] ?? ['other', 'update']
  return { targetType, action }
}

/** The actions of each target type, for `GET /audit/scenarios`. */
export const listScenarios = (): { targetType: string; actions: string[] }[] =>
  targetTypes.flatMap((targetType) => {
    const actions = Object.values(scenarios).flatMap(([type, action]) => (type === targetType ? [action] : []))
    return actions.length === 0 ? [] : [{ targetType, actions: [...new Set(actions)] }]
  })
