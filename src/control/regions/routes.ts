// The endpoints of `/regions` and `/shared-regions`.
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
  UpdateSharedRegion,
} from './schemas.ts'
import { changeSharedRegion, viewRegion, viewRegions, viewSharedRegions } from './service.ts'

export const regionRoutes = (parts: OwnRegionParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/shared-regions',
    needs: 'public',
    summary: 'Lists the regions that every organization may use.',
    replies: { 200: Type.Array(Region) },
    run: () => viewSharedRegions(parts),
  }),
  route({
    method: 'PATCH',
    path: '/shared-regions/:id',
    needs: 'admin',
    summary: 'Decides whether stopped sandboxes of a shared region are saved in the object store.',
    params: RegionId,
    body: UpdateSharedRegion,
    replies: { 200: Region },
    run: ({ params, body }) => changeSharedRegion(parts, params.id, body),
  }),
  route({
    method: 'GET',
    path: '/regions',
    needs: 'member',
    summary: 'Lists the regions that the organization may use, its own first.',
    replies: { 200: Type.Array(Region) },
    run: ({ organization }) => viewRegions(parts, organization.id),
  }),
  route({
    method: 'GET',
    path: '/regions/:id',
    needs: 'member',
    summary: 'Returns a region that the organization may use.',
    params: RegionId,
    replies: { 200: Region },
    run: ({ organization, params }) => viewRegion(parts, organization.id, params.id),
  }),
  route({
    method: 'POST',
    path: '/regions',
    needs: 'write:regions',
    givesAccess: true,
    summary:
      'Creates a region of the organization. Only this reply contains the credentials of its proxy, SSH gateway and snapshot manager.',
    body: CreateRegion,
    replies: { 201: NewRegion },
    run: ({ organization, body }) => createRegion(parts, organization.id, body),
  }),
  route({
    method: 'PATCH',
    path: '/regions/:id',
    needs: 'write:regions',
    givesAccess: true,
    summary:
      'Changes the service and telemetry URLs of a region of the organization. null removes a URL and its service’s credentials.',
    params: RegionId,
    body: UpdateRegion,
    replies: { 200: null },
    run: ({ organization, params, body }) => changeRegion(parts, { organizationId: organization.id, ...params }, body),
  }),
  route({
    method: 'DELETE',
    path: '/regions/:id',
    needs: 'delete:regions',
    summary: 'Deletes a region of the organization. The region must have no runners, sandboxes or volumes.',
    params: RegionId,
    replies: { 204: null },
    run: ({ organization, params }) => removeRegion(parts, { organizationId: organization.id, ...params }),
  }),
  route({
    method: 'POST',
    path: '/regions/:id/regenerate-proxy-api-key',
    needs: 'write:regions',
    givesAccess: true,
    summary: 'Creates a new key for the proxy in a region of the organization. The old key becomes invalid.',
    params: RegionId,
    replies: { 200: NewKey },
    run: ({ organization, params }) => regenerateKey(parts, { organizationId: organization.id, ...params }, 'proxy'),
  }),
  route({
    method: 'POST',
    path: '/regions/:id/regenerate-ssh-gateway-api-key',
    needs: 'write:regions',
    givesAccess: true,
    summary: 'Creates a new key for the SSH gateway in a region of the organization. The old key becomes invalid.',
    params: RegionId,
    replies: { 200: NewKey },
    run: ({ organization, params }) =>
      regenerateKey(parts, { organizationId: organization.id, ...params }, 'ssh-gateway'),
  }),
  route({
    method: 'POST',
    path: '/regions/:id/regenerate-snapshot-manager-credentials',
    needs: 'write:regions',
    givesAccess: true,
    summary:
      'Creates new credentials for the snapshot manager in a region of the organization. The old ones become invalid.',
    params: RegionId,
    replies: { 200: SnapshotManagerCredentials },
    run: ({ organization, params }) => regenerateCredentials(parts, { organizationId: organization.id, ...params }),
  }),
]
