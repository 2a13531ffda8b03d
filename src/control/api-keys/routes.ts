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
    summary: 'Makes a key; its value is answered here and never again.',
    body: CreateApiKey,
    replies: { 201: NewApiKey },
    run: ({ caller, body }) => createApiKey(parts, caller, body),
  }),
  route({
    method: 'GET',
    path: '/api-keys',
    needs: 'member',
    summary: 'Lists keys with masked values: an owner sees all of the organization, a member their own.',
    replies: { 200: Type.Array(ApiKey) },
    run: ({ caller }) => listApiKeys(parts, caller),
  }),
  route({
    method: 'GET',
    path: '/api-keys/current',
    needs: 'member',
    summary: 'The key that this request came with.',
    replies: { 200: ApiKey },
    run: ({ caller }) => getCurrentApiKey(parts, caller),
  }),
  route({
    method: 'GET',
    path: '/api-keys/:name',
    needs: 'member',
    summary: 'One key of the caller.',
    params: KeyName,
    replies: { 200: ApiKey },
    run: ({ caller, params }) => getApiKey(parts, caller, params.name),
  }),
  route({
    method: 'DELETE',
    path: '/api-keys/:name',
    needs: 'member',
    summary: 'Ends a key of the caller at once.',
    params: KeyName,
    replies: { 204: null },
    run: ({ caller, params }) => deleteApiKey(parts, caller, { userId: caller.user.id, name: params.name }),
  }),
  route({
    method: 'DELETE',
    path: '/api-keys/:userId/:name',
    needs: 'member',
    summary: 'Ends a key of any member at once.',
    params: UserKeyName,
    replies: { 204: null },
    run: ({ caller, params }) => deleteApiKey(parts, caller, params),
  }),
]
