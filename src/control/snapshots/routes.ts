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
    summary: 'Lists the snapshots that the organization may use, page by page.',
    query: SnapshotsQuery,
    replies: { 200: SnapshotPage },
    run: ({ organization, query }) => viewSnapshots(parts, organization.id, query),
  }),
  route({
    method: 'POST',
    path: '/snapshots',
    needs: 'write:snapshots',
    summary: 'Creates a snapshot from an image or a Dockerfile. Poll the snapshot until it is active or has failed.',
    body: CreateSnapshot,
    replies: { 200: Snapshot },
    run: async ({ body, ...actor }) => asView(await createSnapshot(parts, actor, body)),
  }),
  route({
    method: 'GET',
    path: '/snapshots/:idOrName',
    needs: 'member',
    summary: 'Returns a snapshot that the organization may use.',
    params: SnapshotIdOrName,
    replies: { 200: Snapshot },
    run: ({ organization, params }) => viewSnapshot(parts, organization.id, params.idOrName),
  }),
  route({
    method: 'DELETE',
    path: '/snapshots/:idOrName',
    needs: 'delete:snapshots',
    summary: 'Deletes a snapshot. Sandboxes made from it are not affected.',
    params: SnapshotIdOrName,
    replies: { 200: null },
    run: ({ params, ...actor }) => deleteSnapshot(parts, actor, params.idOrName),
  }),
  route({
    method: 'POST',
    path: '/snapshots/:idOrName/activate',
    needs: 'write:snapshots',
    summary: 'Activates a snapshot. If its image is missing, a runner fetches or builds the image again.',
    params: SnapshotIdOrName,
    replies: { 200: Snapshot },
    run: async ({ params, ...actor }) => asView(await activateSnapshot(parts, actor, params.idOrName)),
  }),
  route({
    method: 'POST',
    path: '/snapshots/:idOrName/deactivate',
    needs: 'write:snapshots',
    summary: 'Deactivates a snapshot, so that no new sandboxes can be made from it.',
    params: SnapshotIdOrName,
    replies: { 204: null },
    run: ({ params, ...actor }) => deactivateSnapshot(parts, actor, params.idOrName),
  }),
]
