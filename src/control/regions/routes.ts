// `/regions` and `/shared-regions`.
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import {
  changeRegion,
  createRegion,
  type OwnRegionParts,
  regenerateCredentials,
  regenerateKey,
  removeRegion,
} from './own-regions.ts'
import {
  CreateRegion,
  NewKey,
  NewRegion,
  Region,
  RegionId,
  SnapshotManagerCredentials,
  UpdateRegion,
} from './schemas.ts'
import { viewRegion, viewRegions, viewSharedRegions } from './service.ts'

export const regionRoutes = (parts: OwnRegionParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/shared-regions',
    needs: 'public',
    summary: 'The regions that every organization may use.',
    replies: { 200: Type.Array(Region) },
    run: () => viewSharedRegions(parts),
  }),
  route({
    method: 'GET',
    path: '/regions',
    needs: 'member',
    summary: 'The regions that the organization may use, its own first.',
    replies: { 200: Type.Array(Region) },
    run: ({ organization }) => viewRegions(parts, organization.id),
  }),
  route({
    method: 'GET',
    path: '/regions/:id',
    needs: 'member',
    summary: 'One region that the organization may use.',
    params: RegionId,
    replies: { 200: Region },
    run: ({ organization, params }) => viewRegion(parts, organization.id, params.id),
  }),
  route({
    method: 'POST',
    path: '/regions',
    needs: 'write:regions',
    summary: 'Makes a region of the organization; the credentials of its services are answered here and never again.',
    body: CreateRegion,
    replies: { 201: NewRegion },
    run: ({ organization, body }) => createRegion(parts, organization.id, body),
  }),
  route({
    method: 'PATCH',
    path: '/regions/:id',
    needs: 'write:regions',
    summary: 'Changes where the services of an own region are; null takes one away, with its credentials.',
    params: RegionId,
    body: UpdateRegion,
    replies: { 200: null },
    run: ({ organization, params, body }) => changeRegion(parts, { organizationId: organization.id, ...params }, body),
  }),
  route({
    method: 'DELETE',
    path: '/regions/:id',
    needs: 'delete:regions',
    summary: 'Takes an own region away, where neither runners nor sandboxes are left in it.',
    params: RegionId,
    replies: { 204: null },
    run: ({ organization, params }) => removeRegion(parts, { organizationId: organization.id, ...params }),
  }),
  route({
    method: 'POST',
    path: '/regions/:id/regenerate-proxy-api-key',
    needs: 'write:regions',
    summary: 'A new key for the proxy of an own region; the old one is refused from now on.',
    params: RegionId,
    replies: { 200: NewKey },
    run: ({ organization, params }) => regenerateKey(parts, { organizationId: organization.id, ...params }, 'proxy'),
  }),
  route({
    method: 'POST',
    path: '/regions/:id/regenerate-ssh-gateway-api-key',
    needs: 'write:regions',
    summary: 'A new key for the SSH gateway of an own region; the old one is refused from now on.',
    params: RegionId,
    replies: { 200: NewKey },
    run: ({ organization, params }) =>
      regenerateKey(parts, { organizationId: organization.id, ...params }, 'ssh-gateway'),
  }),
  route({
    method: 'POST',
    path: '/regions/:id/regenerate-snapshot-manager-credentials',
    needs: 'write:regions',
    summary: 'New credentials for the snapshot manager of an own region, instead of the old ones.',
    params: RegionId,
    replies: { 200: SnapshotManagerCredentials },
    run: ({ organization, params }) => regenerateCredentials(parts, { organizationId: organization.id, ...params }),
  }),
]
