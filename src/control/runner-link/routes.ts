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
 * The schema allows any fields in `assignment`, because only our own runners read it. Its type is in
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
    summary: 'The sandboxes of the calling runner, each with what it should be.',
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
    summary: 'A runner reports what became of a sandbox.',
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
    summary: 'The runners of this server, each with what it has and how many sandboxes are on it.',
    query: RunnersQuery,
    replies: { 200: Type.Array(Runner) },
    run: ({ query }) => viewRunners(parts, query.regionId),
  }),
  route({
    method: 'GET',
    path: '/runners/:runnerId',
    needs: 'admin',
    summary: 'One runner.',
    params: RunnerId,
    replies: { 200: Runner },
    run: ({ params }) => viewRunner(parts, params.runnerId),
  }),
  route({
    method: 'GET',
    path: '/runners/by-sandbox/:sandboxId',
    needs: 'admin',
    summary: 'The runner that has the disk of a sandbox.',
    params: Type.Object({ sandboxId: PathText }),
    replies: { 200: Runner },
    run: ({ params }) => viewRunnerOf(parts, params.sandboxId),
  }),
  route({
    method: 'POST',
    path: '/runners',
    needs: 'admin',
    givesAccess: true,
    summary: 'Lets a runner join; its token is answered here and never again.',
    body: CreateRunner,
    replies: { 201: NewRunner },
    run: ({ body }) => addRunner(parts, parts.hosts?.authority, body),
  }),
  route({
    method: 'GET',
    path: '/runners/current',
    needs: 'runner',
    summary: 'Which runner calls.',
    replies: { 200: OwnRunner },
    run: ({ runner }) => runner,
  }),
  route({
    method: 'PATCH',
    path: '/runners/:runnerId/scheduling',
    needs: 'admin',
    summary: 'Drains a runner, so that it gets nothing new, and empties it with `move`; or takes it back.',
    params: RunnerId,
    body: UpdateScheduling,
    replies: { 200: Runner },
    run: ({ params, body }) => scheduleRunner(parts, params.runnerId, body),
  }),
  route({
    method: 'GET',
    path: '/runners/:runnerId/emptying',
    needs: 'admin',
    summary: 'How far a runner is from being empty, and what cannot be moved.',
    params: RunnerId,
    replies: { 200: Emptying },
    run: ({ params }) => viewEmptying(parts, params.runnerId),
  }),
  route({
    method: 'POST',
    path: '/runners/:runnerId/lost',
    needs: 'admin',
    summary: 'Gives up a silent runner now, as control does by itself after a while.',
    params: RunnerId,
    replies: { 200: Runner },
    run: ({ params }) => loseRunner(parts, params.runnerId),
  }),
  route({
    method: 'DELETE',
    path: '/runners/:runnerId',
    needs: 'admin',
    summary: 'Takes a runner out of service for good, when nothing is on it, or by force with what is on it.',
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
    summary: 'The images that the calling runner should have, or be rid of.',
    replies: { 200: Type.Array(ImageAssignmentShape) },
    run: ({ runner }) => listImages(parts, runner),
  }),
  route({
    method: 'GET',
    path: '/runners/volumes',
    needs: 'runner',
    summary: 'The volumes that the calling runner should remove.',
    replies: { 200: Type.Array(VolumeAssignmentShape) },
    run: ({ runner }) => listVolumes(parts, runner),
  }),
  route({
    method: 'GET',
    path: '/runners/secrets',
    needs: 'runner',
    summary: 'The secrets that sandboxes of the calling runner use, with their values.',
    replies: { 200: SecretsOfRunnerShape },
    run: ({ runner }) => listSecrets(parts, runner.id),
  }),
  route({
    method: 'GET',
    path: '/runners/contexts',
    needs: 'runner',
    summary:
      'The files of definitions that images are made from; a runner may remove what has not been asked for lately.',
    replies: { 200: ContextsInUseShape },
    run: ({ runner }) => listContexts(parts, runner.regionId),
  }),
  route({
    method: 'GET',
    path: '/runners/link',
    needs: 'runner',
    summary: 'The link of a runner: a WebSocket that carries assignments and reports.',
    replies: { 101: null },
    run: () => {
      throw new Problem('bad_request', 'This is a WebSocket: it needs an upgrade.')
    },
    socket: (socket, { runner, isCertified = false }) => serveRunnerLink(parts, { runner, isCertified }, socket),
  }),
]
