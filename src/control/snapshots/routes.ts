// The endpoints of `/snapshots`.
import { type ControlRoute, route } from '../auth/route.ts'
import type { RunningParts } from '../running.ts'
import { activateSnapshot, deactivateSnapshot, deleteSnapshot } from './change.ts'
import { createSnapshot } from './create.ts'
import { CreateSnapshot, Snapshot, SnapshotIdOrName, SnapshotPage, SnapshotsQuery } from './schemas.ts'
import { asView, viewSnapshot, viewSnapshots } from './service.ts'

export const snapshotRoutes = (parts: RunningParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/snapshots',
    needs: 'member',
    summary: 'The snapshots that the organization may use, page by page.',
    query: SnapshotsQuery,
    replies: { 200: SnapshotPage },
    run: ({ organization, query }) => viewSnapshots(parts, organization.id, query),
  }),
  route({
    method: 'POST',
    path: '/snapshots',
    needs: 'write:snapshots',
    summary: 'Makes a snapshot of an image or a definition; poll it until it is active or has failed.',
    body: CreateSnapshot,
    replies: { 200: Snapshot },
    run: async ({ body, ...actor }) => asView(await createSnapshot(parts, actor, body)),
  }),
  route({
    method: 'GET',
    path: '/snapshots/:idOrName',
    needs: 'member',
    summary: 'One snapshot that the organization may use.',
    params: SnapshotIdOrName,
    replies: { 200: Snapshot },
    run: ({ organization, params }) => viewSnapshot(parts, organization.id, params.idOrName),
  }),
  route({
    method: 'DELETE',
    path: '/snapshots/:idOrName',
    needs: 'delete:snapshots',
    summary: 'Deletes a snapshot. Sandboxes made from it live on.',
    params: SnapshotIdOrName,
    replies: { 200: null },
    run: ({ params, ...actor }) => deleteSnapshot(parts, actor, params.idOrName),
  }),
  route({
    method: 'POST',
    path: '/snapshots/:idOrName/activate',
    needs: 'write:snapshots',
    summary: 'Puts a snapshot into use again, bringing its image where that is needed.',
    params: SnapshotIdOrName,
    replies: { 200: Snapshot },
    run: async ({ params, ...actor }) => asView(await activateSnapshot(parts, actor, params.idOrName)),
  }),
  route({
    method: 'POST',
    path: '/snapshots/:idOrName/deactivate',
    needs: 'write:snapshots',
    summary: 'Puts a snapshot out of use: no new sandboxes from it.',
    params: SnapshotIdOrName,
    replies: { 204: null },
    run: ({ params, ...actor }) => deactivateSnapshot(parts, actor, params.idOrName),
  }),
]
