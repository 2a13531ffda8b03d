// `/regions` and `/shared-regions`.
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import type { Parts } from '../parts.ts'
import { Region, RegionId } from './schemas.ts'
import { viewRegion, viewRegions, viewSharedRegions } from './service.ts'

export const regionRoutes = (parts: Pick<Parts, 'database'>): ControlRoute[] => [
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
]
