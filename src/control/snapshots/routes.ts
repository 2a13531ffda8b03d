// `/snapshots`, as far as they can be read.
import { type ControlRoute, route } from '../auth/route.ts'
import type { Parts } from '../parts.ts'
import { Snapshot, SnapshotIdOrName, SnapshotPage, SnapshotsQuery } from './schemas.ts'
import { viewSnapshot, viewSnapshots } from './service.ts'

export const snapshotRoutes = (parts: Pick<Parts, 'database'>): ControlRoute[] => [
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
    method: 'GET',
    path: '/snapshots/:idOrName',
    needs: 'member',
    summary: 'One snapshot that the organization may use.',
    params: SnapshotIdOrName,
    replies: { 200: Snapshot },
    run: ({ organization, params }) => viewSnapshot(parts, organization.id, params.idOrName),
  }),
]
