// The endpoints of `/secret`. All rules are in service.ts.
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import type { RunningParts } from '../running.ts'
import { CreateSecret, SecretId, SecretsPage, SecretsQuery, SecretView, UpdateSecret } from './schemas.ts'
import { createSecret, removeSecret, updateSecret, viewPage, viewSecret, viewSecrets } from './service.ts'

export const secretRoutes = (parts: RunningParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: '/secret',
    needs: 'manage:secrets',
    summary:
      'Creates a secret. Sandboxes see only a placeholder; requests to the hosts of the secret carry the real value.',
    body: CreateSecret,
    replies: { 201: SecretView },
    run: ({ body, ...actor }) => createSecret(parts, actor, body),
  }),
  route({
    method: 'GET',
    path: '/secret',
    needs: 'member',
    summary:
      'Lists the secrets of the organization by name, without their values (deprecated). Fails if there are more than 1500.',
    replies: { 200: Type.Array(SecretView) },
    run: ({ organization }) => viewSecrets(parts, organization.id),
  }),
  route({
    method: 'GET',
    path: '/secret/paginated',
    needs: 'member',
    summary:
      'Lists the secrets of the organization page by page, without values. A cursor continues after the previous page.',
    query: SecretsQuery,
    replies: { 200: SecretsPage },
    run: ({ organization, query }) => viewPage(parts, organization.id, query),
  }),
  route({
    method: 'GET',
    path: '/secret/:secretId',
    needs: 'member',
    summary: 'Returns a secret, without its value.',
    params: SecretId,
    replies: { 200: SecretView },
    run: ({ organization, params }) => viewSecret(parts, organization.id, params.secretId),
  }),
  route({
    method: 'PATCH',
    path: '/secret/:secretId',
    needs: 'manage:secrets',
    summary: 'Changes the value, description or hosts of a secret. Running sandboxes use the change within seconds.',
    params: SecretId,
    body: UpdateSecret,
    replies: { 200: SecretView },
    run: ({ body, params, ...actor }) => updateSecret(parts, actor, params.secretId, body),
  }),
  route({
    method: 'DELETE',
    path: '/secret/:secretId',
    needs: 'manage:secrets',
    summary: 'Deletes a secret and removes it from the sandboxes that have it.',
    params: SecretId,
    replies: { 204: null },
    run: ({ params, ...actor }) => removeSecret(parts, actor, params.secretId),
  }),
]
