// The address to which the SDK uploads the files of a definition, and the credentials for these uploads.
import Type from 'typebox'
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import { Problem } from '#src/problems.ts'
import type { RunningParts } from '../running.ts'
import { answerUpload, grantPushAccess } from './push-access.ts'

const PushAccess = Type.Object({
  accessKey: Type.String(),
  secret: Type.String(),
  sessionToken: Type.String(),
  storageUrl: Type.String(),
  organizationId: Type.String(),
  bucket: Type.String(),
  region: Type.String(),
})

const Question = Type.Object({
  accessKey: Type.String({ maxLength: 128 }),
  sessionToken: Type.String({ maxLength: 4096 }),
})

const Answer = Type.Object({
  organizationId: Type.String(),
  secret: Type.String(),
  runnerAddress: Type.String(),
  gateId: Type.Optional(Type.String()),
})

export const objectStorageRoutes = (parts: RunningParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/object-storage/push-access',
    needs: 'member',
    summary: 'Returns credentials, valid for one hour, for uploading the files that a Dockerfile’s COPY and ADD use.',
    replies: { 200: PushAccess },
    run: ({ caller }) => grantPushAccess(parts, caller),
  }),
  route({
    method: 'POST',
    path: '/proxy/object-storage',
    needs: 'proxy',
    summary:
      'Returns the organization and the secret of an upload’s credentials, and the runner that stores the files.',
    body: Question,
    replies: { 200: Answer },
    run: ({ body, proxyRegionId }) => {
      // Organizations upload their files only to this server, so the proxy of a region may not call this endpoint.
      if (proxyRegionId !== undefined) throw new Problem('forbidden')
      return answerUpload(parts, body)
    },
  }),
]
