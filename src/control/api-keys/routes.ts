// The endpoints of `/api-keys`: secrets for programs. All rules are in service.ts.
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import { ApiKey, CreateApiKey, KeyName, NewApiKey, UserKeyName } from './schemas.ts'
import { type ApiKeysParts, createApiKey, deleteApiKey, getApiKey, getCurrentApiKey, listApiKeys } from './service.ts'

export const apiKeyRoutes = (parts: ApiKeysParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: '/api-keys',
    needs: 'member',
    summary: 'Creates an API key. Only this answer contains the full value of the key.',
    body: CreateApiKey,
    replies: { 201: NewApiKey },
    run: ({ caller, body }) => createApiKey(parts, caller, body),
  }),
  route({
    method: 'GET',
    path: '/api-keys',
    needs: 'member',
    summary:
      'Lists API keys with masked values. An owner sees all keys of the organization; a member sees only their own.',
    replies: { 200: Type.Array(ApiKey) },
    run: ({ caller }) => listApiKeys(parts, caller),
  }),
  route({
    method: 'GET',
    path: '/api-keys/current',
    needs: 'member',
    summary: 'Returns the API key with which this request was authenticated. The value is masked.',
    replies: { 200: ApiKey },
    run: ({ caller }) => getCurrentApiKey(parts, caller),
  }),
  route({
    method: 'GET',
    path: '/api-keys/:name',
    needs: 'member',
    summary: 'Returns one API key of the caller. The value is masked.',
    params: KeyName,
    replies: { 200: ApiKey },
    run: ({ caller, params }) => getApiKey(parts, caller, params.name),
  }),
  route({
    method: 'DELETE',
    path: '/api-keys/:name',
    needs: 'member',
    summary: 'Deletes an API key of the caller, which stops working immediately.',
    params: KeyName,
    replies: { 204: null },
    run: ({ caller, params }) => deleteApiKey(parts, caller, { userId: caller.user.id, name: params.name }),
  }),
  route({
    method: 'DELETE',
    path: '/api-keys/:userId/:name',
    needs: 'member',
    summary:
      'Deletes a member’s API key, which stops working immediately. For other members’ keys, the caller needs `manage:api_keys`.',
    params: UserKeyName,
    replies: { 204: null },
    run: ({ caller, params }) => deleteApiKey(parts, caller, params),
  }),
]
