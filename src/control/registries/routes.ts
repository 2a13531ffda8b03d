// The endpoints of `/docker-registry`. All rules are in service.ts.
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import type { Parts } from '../parts.ts'
import { CreateRegistry, RegistryId, RegistryView, UpdateRegistry } from './schemas.ts'
import {
  createRegistry,
  removeRegistry,
  updateRegistry,
  viewRegistries,
  viewRegistry,
  withRegistryOutbound,
} from './service.ts'

export const registryRoutes = (given: Parts): ControlRoute[] => {
  const parts = withRegistryOutbound(given)
  return [
    route({
      method: 'POST',
      path: '/docker-registry',
      needs: 'write:registries',
      summary:
        'Adds an account at an image registry after testing it. Later pulls for the organization use the account.',
      body: CreateRegistry,
      replies: { 201: RegistryView },
      run: ({ body, ...actor }) => createRegistry(parts, actor.caller, body),
    }),
    route({
      method: 'GET',
      path: '/docker-registry',
      needs: 'member',
      summary: 'Lists the registries of the organization, without their passwords.',
      replies: { 200: Type.Array(RegistryView) },
      run: ({ caller }) => viewRegistries(parts, caller),
    }),
    route({
      method: 'GET',
      path: '/docker-registry/:id',
      needs: 'member',
      summary: 'Returns a registry of the organization, without its password.',
      params: RegistryId,
      replies: { 200: RegistryView },
      run: ({ caller, params }) => viewRegistry(parts, caller, params.id),
    }),
    route({
      method: 'PATCH',
      path: '/docker-registry/:id',
      needs: 'write:registries',
      summary: 'Changes the given fields of a registry. A new account or password is tested first.',
      params: RegistryId,
      body: UpdateRegistry,
      replies: { 200: RegistryView },
      run: ({ caller, params, body }) => updateRegistry(parts, caller, params.id, body),
    }),
    route({
      method: 'DELETE',
      path: '/docker-registry/:id',
      needs: 'delete:registries',
      summary: 'Removes a registry. Later pulls do not use its account.',
      params: RegistryId,
      replies: { 204: null },
      run: ({ caller, params }) => removeRegistry(parts, caller, params.id),
    }),
  ]
}
