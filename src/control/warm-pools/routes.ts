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
    summary: 'Lists the warm pools of the organization, each with the number of its ready sandboxes.',
    replies: { 200: Type.Array(WarmPool) },
    run: (actor) => viewWarmPools(parts, actor),
  }),
  route({
    method: 'POST',
    path: '/warm-pools',
    needs: 'write:sandboxes',
    summary: 'Creates a warm pool, which keeps a number of sandboxes of one snapshot started in advance.',
    body: CreateWarmPool,
    replies: { 201: WarmPool },
    run: ({ body, ...actor }) => createWarmPool(parts, actor, body),
  }),
  route({
    method: 'PATCH',
    path: '/warm-pools/:warmPoolId',
    needs: 'write:sandboxes',
    summary: 'Changes how many sandboxes a warm pool keeps started. 0 deletes all its unclaimed sandboxes.',
    params: WarmPoolId,
    body: UpdateWarmPool,
    replies: { 200: WarmPool },
    run: ({ params, body, ...actor }) => resizeWarmPool(parts, actor, params.warmPoolId, body.pool),
  }),
  route({
    method: 'DELETE',
    path: '/warm-pools/:warmPoolId',
    needs: 'delete:sandboxes',
    summary: 'Deletes a warm pool and its unclaimed sandboxes.',
    params: WarmPoolId,
    replies: { 204: null },
    run: ({ params, ...actor }) => deleteWarmPool(parts, actor, params.warmPoolId),
  }),
]
