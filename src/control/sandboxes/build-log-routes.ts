// The build logs of snapshots and sandboxes that were made from a definition. Clients first request the URL of a log. With
// `follow`, the reply with the log goes on until the build ends.
import type { FastifyReply } from 'fastify'
import Type, { type Static, type TObject } from 'typebox'
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import { readBuildLog } from '#src/control/images/build-logs.ts'
import { statesInMaking } from '#src/control/snapshots/lifecycle.ts'
import { SnapshotIdOrName } from '#src/control/snapshots/schemas.ts'
import { findSnapshot } from '#src/control/snapshots/service.ts'
import type { Shape } from '#src/http/route.ts'
import { noSnapshot, Problem } from '#src/problems.ts'
import type { RunningParts } from '../running.ts'
import { statesAwaitingImage } from './record/lifecycle.ts'
import { ByIdOrName } from './record/schemas.ts'
import { findSandboxById, getSandbox } from './service.ts'

const BuildLogsUrl = Type.Object({ url: Type.String() })
const FollowQuery = Type.Object({ follow: Type.Boolean({ default: false }) })

/** A snapshot or sandbox that has a build log and that the caller may see. */
type Built = { path: string; organizationId: string; image: string; isBeingMade: () => Promise<boolean> }

/** The build-log endpoints of snapshots or of sandboxes. `made` and `until` are parts of sentences in OpenAPI descriptions. */
type Logged<P extends TObject> = {
  path: string
  params: P
  made: string
  until: string
  find: (organizationId: string, params: Shape<P>) => Promise<Built>
}

const making: readonly string[] = statesInMaking
const awaiting: readonly string[] = statesAwaitingImage

const ofSnapshot = async (parts: RunningParts, organizationId: string, idOrName: string): Promise<Built> => {
  const find = () => findSnapshot(parts.database.sql, organizationId, idOrName)
  const snapshot = await find()
  if (snapshot === undefined) throw noSnapshot(idOrName)
  const isBeingMade = async () => making.includes((await find())?.state ?? '')
  return { path: `/snapshots/${encodeURIComponent(snapshot.id)}`, organizationId, image: snapshot.image, isBeingMade }
}

const ofSandbox = async (parts: RunningParts, organizationId: string, idOrName: string): Promise<Built> => {
  const { id, build, image } = await getSandbox(parts.database.sql, organizationId, idOrName)
  if (build === null)
    throw new Problem('not_found', 'This sandbox was not built from a definition, so it has no build log.')
  const isBeingMade = async () => awaiting.includes((await findSandboxById(parts.database.sql, id))?.state ?? '')
  return { path: `/sandbox/${id}`, organizationId, image, isBeingMade }
}

export const buildLogRoutes = (parts: RunningParts): ControlRoute[] => {
  const urlOf = ({ path }: Built) => ({ url: `${parts.settings.publicUrl}/api${path}/build-logs` })
  const textOf = (reply: FastifyReply, { image, ...built }: Built, { follow }: Static<typeof FollowQuery>) => {
    reply.type('text/plain; charset=utf-8')
    return readBuildLog(parts, image, { follow, ...built })
  }
  const routesFor = <P extends TObject>({ path, params, made, until, find }: Logged<P>): ControlRoute[] => [
    route({
      method: 'GET',
      path: `${path}/build-logs-url`,
      needs: 'member',
      summary: `Returns the URL for the build log of ${made}. \`?follow=true\` may be added to the URL.`,
      params,
      replies: { 200: BuildLogsUrl },
      run: async ({ organization, params }) => urlOf(await find(organization.id, params)),
    }),
    route({
      method: 'GET',
      path: `${path}/build-logs`,
      needs: 'member',
      summary: `Returns the build log of ${made} as plain text. With \`follow\`, continues until ${until}.`,
      params,
      query: FollowQuery,
      replies: { 200: Type.String() },
      run: async ({ organization, params, query, reply }) => textOf(reply, await find(organization.id, params), query),
    }),
  ]
  return [
    ...routesFor({
      path: '/snapshots/:idOrName',
      params: SnapshotIdOrName,
      made: 'a snapshot',
      until: 'the snapshot is made or has failed',
      find: (organizationId, { idOrName }) => ofSnapshot(parts, organizationId, idOrName),
    }),
    ...routesFor({
      path: '/sandbox/:sandboxIdOrName',
      params: ByIdOrName,
      made: 'a sandbox made from a Dockerfile',
      until: 'the build ends',
      find: (organizationId, { sandboxIdOrName }) => ofSandbox(parts, organizationId, sandboxIdOrName),
    }),
  ]
}
