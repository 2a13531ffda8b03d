// The endpoints that runners call, among them the link, and the operator's endpoints for runners.
import Type from 'typebox'
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import { listForRunner as listImages } from '#src/control/images/images.ts'
import { ContextsInUseShape, listContexts } from '#src/control/object-storage/service.ts'
import {
  CreateRunner,
  Emptying,
  NewRunner,
  OwnRunner,
  RemoveRunner,
  Runner,
  RunnerId,
  RunnersQuery,
  UpdateScheduling,
} from '#src/control/runners/schemas.ts'
import { asAssignment, asRecord } from '#src/control/sandboxes/record/sandbox.ts'
import { ForRunnerQuery, reportable, SandboxRecord, UpdateSandboxState } from '#src/control/sandboxes/record/schemas.ts'
import { listForRunner } from '#src/control/sandboxes/service.ts'
import { applyReport } from '#src/control/sandboxes/upkeep/reports.ts'
import { listForRunner as listSecrets } from '#src/control/secrets/of-runner.ts'
import { SecretsOfRunnerShape } from '#src/control/secrets/schemas.ts'
import { ImageAssignmentShape } from '#src/control/snapshots/schemas.ts'
import { listForRunner as listVolumes } from '#src/control/volumes/of-runner.ts'
import { VolumeAssignmentShape } from '#src/control/volumes/schemas.ts'
import { PathText } from '#src/http/shapes.ts'
import { Problem } from '#src/problems.ts'
import type { Hosts } from '../hosts/connections.ts'
import type { RunningParts } from '../running.ts'
import { serveRunnerLink } from './link.ts'
import {
  addRunner,
  loseRunner,
  removeRunner,
  scheduleRunner,
  viewEmptying,
  viewRunner,
  viewRunnerOf,
  viewRunners,
} from './operate.ts'

const isReportable = (state: string): state is (typeof reportable)[number] =>
  (reportable as readonly string[]).includes(state)

/**
 * The schema allows any fields in `assignment`, because only our own runners read it. The type of `assignment` is in
 * `wire/runner-link.ts`.
 */
const AssignedSandbox = Type.Object({
  ...SandboxRecord.properties,
  assignment: Type.Object({}, { additionalProperties: true }),
})

export const runnerRoutes = (parts: RunningParts & { hosts: Hosts | undefined }): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/sandbox/for-runner',
    needs: 'runner',
    summary: 'Lists the sandboxes of the calling runner, each with its assignment.',
    query: ForRunnerQuery,
    replies: { 200: Type.Array(AssignedSandbox) },
    run: async ({ runner, query }) => {
      const rows = await listForRunner(parts.database.sql, runner.id, query)
      return rows.map((row) => {
        const { env, ...rest } = asAssignment(row)
        const assignment = query.envOnce ? rest : { ...rest, env }
        return { ...asRecord(row, parts.settings.proxyUrl), assignment }
      })
    },
  }),
  route({
    method: 'PUT',
    path: '/sandbox/:sandboxId/state',
    needs: 'runner',
    summary: 'Stores the state that the calling runner reports for a sandbox.',
    params: Type.Object({ sandboxId: PathText }),
    body: UpdateSandboxState,
    replies: { 200: null },
    run: async ({ runner, params, body }) => {
      const { state, ...rest } = body
      if (!isReportable(state)) throw new Problem('bad_request', `A runner cannot report that a sandbox is ${state}.`)
      await applyReport(parts, runner.id, { sandboxId: params.sandboxId, state, ...rest })
    },
  }),
  route({
    method: 'GET',
    path: '/runners',
    needs: 'admin',
    summary: 'Lists the runners of this server, each with its resources and its number of sandboxes.',
    query: RunnersQuery,
    replies: { 200: Type.Array(Runner) },
    run: ({ query }) => viewRunners(parts, query.regionId),
  }),
  route({
    method: 'GET',
    path: '/runners/:runnerId',
    needs: 'admin',
    summary: 'Returns a runner.',
    params: RunnerId,
    replies: { 200: Runner },
    run: ({ params }) => viewRunner(parts, params.runnerId),
  }),
  route({
    method: 'GET',
    path: '/runners/by-sandbox/:sandboxId',
    needs: 'admin',
    summary: 'Returns the runner that has the disk of a sandbox.',
    params: Type.Object({ sandboxId: PathText }),
    replies: { 200: Runner },
    run: ({ params }) => viewRunnerOf(parts, params.sandboxId),
  }),
  route({
    method: 'POST',
    path: '/runners',
    needs: 'admin',
    givesAccess: true,
    summary: 'Adds a runner. Only this reply contains the token with which the runner joins.',
    body: CreateRunner,
    replies: { 201: NewRunner },
    run: ({ body }) => addRunner(parts, parts.hosts?.authority, body),
  }),
  route({
    method: 'GET',
    path: '/runners/current',
    needs: 'runner',
    summary: 'Returns the id and the region of the calling runner.',
    replies: { 200: OwnRunner },
    run: ({ runner }) => runner,
  }),
  route({
    method: 'PATCH',
    path: '/runners/:runnerId/scheduling',
    needs: 'admin',
    summary:
      'Drains a runner or ends the draining. A drained runner gets no new sandboxes; `move` moves its sandboxes away.',
    params: RunnerId,
    body: UpdateScheduling,
    replies: { 200: Runner },
    run: ({ params, body }) => scheduleRunner(parts, params.runnerId, body),
  }),
  route({
    method: 'GET',
    path: '/runners/:runnerId/emptying',
    needs: 'admin',
    summary: 'Returns how many sandboxes are still on a runner, and which of them cannot be moved.',
    params: RunnerId,
    replies: { 200: Emptying },
    run: ({ params }) => viewEmptying(parts, params.runnerId),
  }),
  route({
    method: 'POST',
    path: '/runners/:runnerId/lost',
    needs: 'admin',
    summary: 'Declares a silent runner lost now, as control does automatically after a while.',
    params: RunnerId,
    replies: { 200: Runner },
    run: ({ params }) => loseRunner(parts, params.runnerId),
  }),
  route({
    method: 'DELETE',
    path: '/runners/:runnerId',
    needs: 'admin',
    summary:
      'Removes an empty runner permanently. With `force`, also removes one with sandboxes or volumes; their data on it is lost.',
    params: RunnerId,
    query: RemoveRunner,
    replies: { 204: null },
    run: async ({ params, query }) => {
      await removeRunner(parts, params.runnerId, query.force === true)
      parts.hosts?.connections.checkAgain(params.runnerId)
    },
  }),
  route({
    method: 'GET',
    path: '/runners/images',
    needs: 'runner',
    summary: 'Lists the images that the calling runner should have or remove.',
    replies: { 200: Type.Array(ImageAssignmentShape) },
    run: ({ runner }) => listImages(parts, runner),
  }),
  route({
    method: 'GET',
    path: '/runners/volumes',
    needs: 'runner',
    summary: 'Lists the volumes that the calling runner should remove.',
    replies: { 200: Type.Array(VolumeAssignmentShape) },
    run: ({ runner }) => listVolumes(parts, runner),
  }),
  route({
    method: 'GET',
    path: '/runners/secrets',
    needs: 'runner',
    summary: 'Lists the secrets that sandboxes of the calling runner use, with their values.',
    replies: { 200: SecretsOfRunnerShape },
    run: ({ runner }) => listSecrets(parts, runner.id),
  }),
  route({
    method: 'GET',
    path: '/runners/contexts',
    needs: 'runner',
    summary:
      'Lists the hashes of uploaded files that images are built from. Runners may remove unlisted files not requested recently.',
    replies: { 200: ContextsInUseShape },
    run: ({ runner }) => listContexts(parts, runner.regionId),
  }),
  route({
    method: 'GET',
    path: '/runners/link',
    needs: 'runner',
    summary: 'Opens the link of a runner: a WebSocket that carries assignments and reports.',
    replies: { 101: null },
    run: () => {
      throw new Problem('bad_request', 'This is a WebSocket: it needs an upgrade.')
    },
    socket: (socket, { runner, isCertified = false }) => serveRunnerLink(parts, { runner, isCertified }, socket),
  }),
]
