// The endpoints of `/warm-pools`.
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import type { RunningParts } from '../running.ts'
import { CreateWarmPool, UpdateWarmPool, WarmPool, WarmPoolId } from './schemas.ts'
import { createWarmPool, deleteWarmPool, resizeWarmPool, viewWarmPools } from './service.ts'

export const warmPoolRoutes = (parts: RunningParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/warm-pools',
    needs: 'member',
    summary: 'The warm pools of the organization, each with how many of its sandboxes are ready.',
    replies: { 200: Type.Array(WarmPool) },
    run: (actor) => viewWarmPools(parts, actor),
  }),
  route({
    method: 'POST',
    path: '/warm-pools',
    needs: 'write:sandboxes',
    summary: 'Keeps a number of sandboxes of a snapshot started ahead.',
    body: CreateWarmPool,
    replies: { 201: WarmPool },
    run: ({ body, ...actor }) => createWarmPool(parts, actor, body),
  }),
  route({
    method: 'PATCH',
    path: '/warm-pools/:warmPoolId',
    needs: 'write:sandboxes',
    summary: 'Sets how many are kept; 0 drains the pool.',
    params: WarmPoolId,
    body: UpdateWarmPool,
    replies: { 200: WarmPool },
    run: ({ params, body, ...actor }) => resizeWarmPool(parts, actor, params.warmPoolId, body.pool),
  }),
  route({
    method: 'DELETE',
    path: '/warm-pools/:warmPoolId',
    needs: 'delete:sandboxes',
    summary: 'Ends a warm pool, with the sandboxes that nobody has claimed.',
    params: WarmPoolId,
    replies: { 204: null },
    run: ({ params, ...actor }) => deleteWarmPool(parts, actor, params.warmPoolId),
  }),
]
