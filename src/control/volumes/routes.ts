// The endpoints of `/volumes`.
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import type { RunningParts } from '../running.ts'
import { CreateVolume, Volume, VolumeId, VolumeName, VolumesQuery } from './schemas.ts'
import { createVolume, deleteVolume, viewVolume, viewVolumeByName, viewVolumes } from './service.ts'

export const volumeRoutes = (parts: RunningParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/volumes',
    needs: 'read:volumes',
    summary: 'Lists the volumes of the organization, newest first.',
    query: VolumesQuery,
    replies: { 200: Type.Array(Volume) },
    run: ({ organization, query }) => viewVolumes(parts, organization.id, query.includeDeleted),
  }),
  route({
    method: 'POST',
    path: '/volumes',
    needs: 'write:volumes',
    summary: 'Creates a volume. Sandboxes can mount it immediately.',
    body: CreateVolume,
    replies: { 200: Volume },
    run: ({ body, ...actor }) => createVolume(parts, actor, body),
  }),
  route({
    method: 'GET',
    path: '/volumes/:volumeId',
    needs: 'read:volumes',
    summary: 'Returns a volume.',
    params: VolumeId,
    replies: { 200: Volume },
    run: ({ organization, params }) => viewVolume(parts, organization.id, params.volumeId),
  }),
  route({
    method: 'DELETE',
    path: '/volumes/:volumeId',
    needs: 'delete:volumes',
    summary: 'Deletes a volume and its files. Fails if a sandbox mounts the volume.',
    params: VolumeId,
    replies: { 200: null },
    run: ({ params, ...actor }) => deleteVolume(parts, actor, params.volumeId),
  }),
  route({
    method: 'GET',
    path: '/volumes/by-name/:volumeName',
    needs: 'read:volumes',
    summary: 'Returns the volume with this name.',
    params: VolumeName,
    replies: { 200: Volume },
    run: ({ organization, params }) => viewVolumeByName(parts, organization.id, params.volumeName),
  }),
]
