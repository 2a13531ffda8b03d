// The sandbox endpoints. The two that runners call, `/sandbox/for-runner` and `/sandbox/{id}/state`, are in
// `../runner-link/routes.ts`.
import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { answerAhead } from '#src/control/access/answers-ahead.ts'
import type { GateParts } from '#src/control/access/gate-links.ts'
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import { readIdempotencyKey } from '#src/http/idempotency-key.ts'
import { PathText } from '#src/http/shapes.ts'
import { listSandboxes, pageSandboxes } from './listing/listing.ts'
import { asListItem, asRecord, type SandboxRow } from './record/sandbox.ts'
import * as shapes from './record/schemas.ts'
import { getSandbox } from './record/store.ts'
import { listEvents } from './record/timeline.ts'
import { archiveSandbox } from './verbs/archive.ts'
import { createSandbox } from './verbs/create.ts'
import { deleteSandbox } from './verbs/destroy.ts'
import { evictSandbox, getEvenEvicted } from './verbs/evict.ts'
import { forkSandbox, getParent, listAncestors, listForks } from './verbs/fork.ts'
import { setNetwork } from './verbs/network-settings.ts'
import { pauseSandbox } from './verbs/pause.ts'
import { recoverSandbox } from './verbs/recover.ts'
import { resizeSandbox } from './verbs/resize.ts'
import { setSecrets } from './verbs/secrets.ts'
import * as settings from './verbs/settings.ts'
import { snapshotSandbox } from './verbs/snapshot.ts'
import { startSandbox } from './verbs/start.ts'
import { stopSandbox } from './verbs/stop.ts'

const { ByIdOrName, SandboxRecord } = shapes

const byIdOrNameAnd = <const K extends string>(name: K) =>
  Type.Object({ ...ByIdOrName.properties, [name]: PathText } as typeof ByIdOrName.properties & Record<K, Type.TString>)

export const sandboxRoutes = (parts: GateParts): ControlRoute[] => {
  const { database, clock, settings: server } = parts
  const record = (row: SandboxRow) => asRecord(row, server.proxyUrl)
  /** After a create or a start, the caller will probably use the toolbox. Telling the gates ahead makes the first call fast. */
  const opening = (request: FastifyRequest) => {
    const at = parts.clock.now()
    return (row: SandboxRow) => {
      answerAhead(parts, request, row, at)
      return record(row)
    }
  }
  return [
    route({
      method: 'POST',
      path: '/sandbox',
      needs: 'write:sandboxes',
      summary: 'Creates a sandbox and waits up to 30 s until it is started.',
      body: shapes.CreateSandbox,
      bodyOptional: true,
      replies: { 200: SandboxRecord },
      run: async ({ body, request, ...actor }) => {
        const opened = opening(request)
        const key = readIdempotencyKey(request.headers['idempotency-key'])
        return opened(await createSandbox(parts, actor, body ?? {}, key))
      },
    }),
    route({
      method: 'GET',
      path: '/sandbox',
      needs: 'member',
      summary: 'Lists sandboxes page by page. A cursor continues after the previous page.',
      query: shapes.ListQuery,
      replies: { 200: shapes.ListSandboxesResponse },
      run: async ({ organization, query }) => {
        const { rows, nextCursor } = await listSandboxes(database, organization.id, query, clock.now())
        return { items: rows.map((row) => asListItem(row, server.proxyUrl)), nextCursor }
      },
    }),
    route({
      method: 'GET',
      path: '/sandbox/paginated',
      needs: 'member',
      summary: 'Lists sandboxes by page number (deprecated).',
      query: shapes.PageQuery,
      replies: { 200: shapes.PaginatedSandboxes },
      run: async ({ organization, query }) => {
        const { rows, ...counts } = await pageSandboxes(database, organization.id, query, clock.now())
        return { items: rows.map(record), ...counts }
      },
    }),
    route({
      method: 'GET',
      path: '/sandbox/:sandboxIdOrName',
      needs: 'member',
      summary: 'Returns a sandbox.',
      params: ByIdOrName,
      query: shapes.GetQuery,
      replies: { 200: SandboxRecord },
      run: async ({ organization, params }) =>
        record(await getEvenEvicted(parts, organization.id, params.sandboxIdOrName)),
    }),
    route({
      method: 'GET',
      path: '/sandbox/:sandboxIdOrName/events',
      needs: 'member',
      summary:
        'Lists events of a sandbox in the last 30 days, newest first. Finds deleted sandboxes by id (Alcove only).',
      params: ByIdOrName,
      query: shapes.TimelineQuery,
      replies: { 200: shapes.SandboxEvents },
      run: async ({ organization, params, query }) =>
        await listEvents(database, organization.id, params.sandboxIdOrName, query),
    }),
    route({
      method: 'DELETE',
      path: '/sandbox/:sandboxIdOrName',
      needs: 'delete:sandboxes',
      summary: 'Deletes a sandbox in any state. Its name is free immediately.',
      params: ByIdOrName,
      replies: { 200: SandboxRecord },
      run: async ({ params, ...actor }) => record(await deleteSandbox(parts, actor, params.sandboxIdOrName)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/start',
      needs: 'write:sandboxes',
      summary: 'Starts a stopped or archived sandbox, or resumes a paused one.',
      params: ByIdOrName,
      replies: { 200: SandboxRecord },
      run: async ({ params, request, ...actor }) => {
        const opened = opening(request)
        return opened(await startSandbox(parts, actor, params.sandboxIdOrName))
      },
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/stop',
      needs: 'write:sandboxes',
      summary: 'Stops a started sandbox. With `force`, its processes get SIGKILL immediately.',
      params: ByIdOrName,
      query: shapes.StopQuery,
      replies: { 200: SandboxRecord },
      run: async ({ params, query, ...actor }) =>
        record(await stopSandbox(parts, actor, params.sandboxIdOrName, query)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/pause',
      needs: 'write:sandboxes',
      summary: 'Pauses a started sandbox: all its processes are frozen. A start resumes them.',
      params: ByIdOrName,
      replies: { 200: SandboxRecord },
      run: async ({ params, ...actor }) => record(await pauseSandbox(parts, actor, params.sandboxIdOrName)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/resize',
      needs: 'write:sandboxes',
      summary: 'Changes the CPU, memory and disk limits of a sandbox, running or not, and waits for the result.',
      params: ByIdOrName,
      body: shapes.ResizeSandbox,
      replies: { 200: SandboxRecord },
      run: async ({ params, body, ...actor }) =>
        record(await resizeSandbox(parts, actor, params.sandboxIdOrName, body)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/archive',
      needs: 'write:sandboxes',
      summary: 'Moves the disk of a sandbox from its runner to the object store. A start brings the disk back.',
      params: ByIdOrName,
      replies: { 200: SandboxRecord },
      run: async ({ params, ...actor }) => record(await archiveSandbox(parts, actor, params.sandboxIdOrName)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/snapshot',
      needs: 'write:sandboxes',
      summary: 'Creates a snapshot from the disk of a sandbox at one point in time. The sandbox continues as before.',
      params: ByIdOrName,
      body: shapes.CreateSandboxSnapshot,
      replies: { 200: SandboxRecord },
      run: async ({ params, body, request, ...actor }) => {
        const key = readIdempotencyKey(request.headers['idempotency-key'])
        return record(await snapshotSandbox(parts, actor, params.sandboxIdOrName, body, key))
      },
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/fork',
      needs: 'write:sandboxes',
      summary: 'Creates a new sandbox with a copy of the present disk of this sandbox. Returns the new sandbox.',
      params: ByIdOrName,
      body: shapes.ForkSandbox,
      bodyOptional: true,
      replies: { 200: SandboxRecord },
      run: async ({ params, body, request, ...actor }) => {
        const opened = opening(request)
        const key = readIdempotencyKey(request.headers['idempotency-key'])
        return opened(await forkSandbox(parts, actor, params.sandboxIdOrName, body ?? {}, key))
      },
    }),
    route({
      method: 'GET',
      path: '/sandbox/:sandboxIdOrName/forks',
      needs: 'member',
      summary: 'Lists the sandboxes that were forked from this sandbox, newest first, at most 100.',
      params: ByIdOrName,
      query: shapes.ForksQuery,
      replies: { 200: Type.Array(SandboxRecord) },
      run: async ({ params, query, ...actor }) =>
        (await listForks(parts, actor, params.sandboxIdOrName, query)).map(record),
    }),
    route({
      method: 'GET',
      path: '/sandbox/:sandboxIdOrName/parent',
      needs: 'member',
      summary: 'Returns the sandbox from which this sandbox was forked.',
      params: ByIdOrName,
      replies: { 200: SandboxRecord },
      run: async ({ params, ...actor }) => record(await getParent(parts, actor, params.sandboxIdOrName)),
    }),
    route({
      method: 'GET',
      path: '/sandbox/:sandboxIdOrName/ancestors',
      needs: 'member',
      summary: 'Lists the ancestors of a forked sandbox that still exist, oldest first, at most 50.',
      params: ByIdOrName,
      replies: { 200: Type.Array(SandboxRecord) },
      run: async ({ params, ...actor }) => (await listAncestors(parts, actor, params.sandboxIdOrName)).map(record),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxId/evict',
      needs: 'admin',
      summary:
        'Destroys a sandbox of any organization to free its resources. The sandbox is shown as evicted for a day.',
      params: Type.Object({ sandboxId: Type.String({ minLength: 1, maxLength: 255 }) }),
      replies: { 200: SandboxRecord },
      run: async ({ params, user }) => record(await evictSandbox(parts, user.id, params.sandboxId)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/recover',
      needs: 'write:sandboxes',
      summary: 'Recovers a sandbox from the state `error` to `started` or, with `skipStart`, to `stopped`.',
      params: ByIdOrName,
      query: shapes.RecoverQuery,
      replies: { 200: SandboxRecord },
      run: async ({ params, query, ...actor }) =>
        record(await recoverSandbox(parts, actor, params.sandboxIdOrName, query)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/backup',
      needs: 'write:sandboxes',
      summary: 'Does nothing and returns the sandbox (deprecated).',
      params: ByIdOrName,
      replies: { 200: SandboxRecord },
      run: async ({ organization, params }) =>
        record(await getSandbox(database.sql, organization.id, params.sandboxIdOrName)),
    }),
    route({
      method: 'PUT',
      path: '/sandbox/:sandboxIdOrName/labels',
      needs: 'write:sandboxes',
      summary: 'Replaces all labels of a sandbox.',
      params: ByIdOrName,
      body: shapes.SandboxLabels,
      replies: { 200: shapes.SandboxLabels },
      run: async ({ params, body, ...actor }) => {
        const { labels } = await settings.setLabels(parts, actor, params.sandboxIdOrName, body.labels)
        return { labels }
      },
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/network-settings',
      needs: 'write:sandboxes',
      summary: 'Changes the network policy of a sandbox immediately, also for open connections.',
      params: ByIdOrName,
      body: shapes.NetworkSettings,
      replies: { 200: SandboxRecord },
      run: async ({ params, body, ...actor }) => record(await setNetwork(parts, actor, params.sandboxIdOrName, body)),
    }),
    route({
      method: 'PUT',
      path: '/sandbox/:sandboxIdOrName/secrets',
      needs: 'write:sandboxes',
      summary: 'Replaces the secrets of a sandbox. Processes that start later get the new environment variables.',
      params: ByIdOrName,
      body: shapes.SandboxSecrets,
      replies: { 200: SandboxRecord },
      run: async ({ params, body, request, ...actor }) => {
        const opened = opening(request)
        return opened(await setSecrets(parts, actor, params.sandboxIdOrName, body))
      },
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/public/:isPublic',
      needs: 'write:sandboxes',
      summary: 'Makes the previews of a sandbox public or private.',
      params: byIdOrNameAnd('isPublic'),
      replies: { 200: SandboxRecord },
      run: async ({ params, ...actor }) =>
        record(await settings.setPublic(parts, actor, params.sandboxIdOrName, params.isPublic)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/autostop/:interval',
      needs: 'write:sandboxes',
      summary: 'Sets the minutes without activity after which a sandbox is stopped. 0 disables autostop.',
      params: byIdOrNameAnd('interval'),
      replies: { 200: SandboxRecord },
      run: async ({ params, ...actor }) =>
        record(await settings.setAutoStop(parts, actor, params.sandboxIdOrName, params.interval)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/autopause/:interval',
      needs: 'write:sandboxes',
      summary:
        'Sets the minutes without activity after which a sandbox is paused; 0 disables autopause. Autostop must be off.',
      params: byIdOrNameAnd('interval'),
      replies: { 200: SandboxRecord },
      run: async ({ params, ...actor }) =>
        record(await settings.setAutoPause(parts, actor, params.sandboxIdOrName, params.interval)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/autoarchive/:interval',
      needs: 'write:sandboxes',
      summary:
        'Sets the minutes after which a stopped sandbox is archived. 0 means the maximum that the server allows.',
      params: byIdOrNameAnd('interval'),
      replies: { 200: SandboxRecord },
      run: async ({ params, ...actor }) =>
        record(await settings.setAutoArchive(parts, actor, params.sandboxIdOrName, params.interval)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/autodelete/:interval',
      needs: 'write:sandboxes',
      summary:
        'Sets the minutes after which a stopped sandbox is deleted. 0 means immediately, a negative number means never.',
      params: byIdOrNameAnd('interval'),
      replies: { 200: SandboxRecord },
      run: async ({ params, ...actor }) =>
        record(await settings.setAutoDelete(parts, actor, params.sandboxIdOrName, params.interval)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/ttl/:ttlMinutes',
      needs: 'write:sandboxes',
      summary: 'Sets in how many minutes a sandbox is destroyed, counted from now. 0 means never.',
      params: byIdOrNameAnd('ttlMinutes'),
      replies: { 200: SandboxRecord },
      run: async ({ params, ...actor }) =>
        record(await settings.setTtl(parts, actor, params.sandboxIdOrName, params.ttlMinutes)),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/last-activity',
      needs: 'member',
      summary: 'Records activity in a sandbox, so that its idle time starts again.',
      params: ByIdOrName,
      body: Type.Object({ activityType: Type.Optional(Type.String({ maxLength: 255 })) }),
      bodyOptional: true,
      replies: { 201: null },
      run: async ({ params, ...actor }) => {
        await settings.refreshActivity(parts, actor, params.sandboxIdOrName)
      },
    }),
    route({
      method: 'GET',
      path: '/sandbox/:sandboxIdOrName/signing-key',
      needs: 'write:sandboxes',
      givesAccess: true,
      summary: 'Returns the key that signs URLs of a sandbox.',
      params: ByIdOrName,
      replies: { 200: Type.String() },
      run: ({ params, ...actor }) => settings.getSigningKey(parts, actor, params.sandboxIdOrName),
    }),
    route({
      method: 'POST',
      path: '/sandbox/:sandboxIdOrName/signing-key/rotate',
      needs: 'write:sandboxes',
      givesAccess: true,
      summary: 'Replaces the signing key of a sandbox and returns the new key. URLs signed before become invalid.',
      params: ByIdOrName,
      replies: { 200: Type.String() },
      run: ({ params, ...actor }) => settings.rotateSigningKey(parts, actor, params.sandboxIdOrName),
    }),
    route({
      method: 'GET',
      path: '/sandbox/:sandboxIdOrName/toolbox-proxy-url',
      needs: 'member',
      summary: 'Returns the URL for calls to the toolbox of a sandbox.',
      params: ByIdOrName,
      replies: { 200: Type.Object({ url: Type.String() }) },
      run: async ({ organization, params }) => ({
        url: record(await getSandbox(database.sql, organization.id, params.sandboxIdOrName)).toolboxProxyUrl,
      }),
    }),
  ]
}
