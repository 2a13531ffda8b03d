// The endpoints that return the URLs of previews.
import Type from 'typebox'
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import { ByIdOrName } from '#src/control/sandboxes/record/schemas.ts'
import { PathText } from '#src/http/shapes.ts'
import type { RunningParts } from '../running.ts'
import { expirePreviewUrl, getPreviewUrl, signPreviewUrl } from './preview.ts'

const ByPort = Type.Object({ ...ByIdOrName.properties, port: PathText })
const ByToken = Type.Object({ ...ByPort.properties, token: PathText })

const SignQuery = Type.Object({ expiresInSeconds: Type.Integer({ minimum: 1, maximum: 86_400, default: 60 }) })

const PreviewUrl = Type.Object({ sandboxId: Type.String(), url: Type.String(), token: Type.String() })
const SignedPreviewUrl = Type.Object({ ...PreviewUrl.properties, port: Type.Integer() })

export const previewRoutes = (parts: RunningParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/sandbox/:sandboxIdOrName/ports/:port/preview-url',
    needs: 'member',
    summary: 'Returns a port’s preview URL and a preview token. A token issued to an API key ends with that key.',
    params: ByPort,
    replies: { 200: PreviewUrl },
    run: ({ caller, params }) => getPreviewUrl(parts, caller, params.sandboxIdOrName, params.port),
  }),
  route({
    method: 'GET',
    path: '/sandbox/:sandboxIdOrName/ports/:port/signed-preview-url',
    needs: 'member',
    summary:
      'Creates a signed preview URL, which opens a port without a credential until the URL expires. Default: after 60 seconds.',
    params: ByPort,
    query: SignQuery,
    replies: { 200: SignedPreviewUrl },
    run: ({ caller, params, query }) =>
      signPreviewUrl(parts, caller, params.sandboxIdOrName, params.port, query.expiresInSeconds),
  }),
  route({
    method: 'POST',
    path: '/sandbox/:sandboxIdOrName/ports/:port/signed-preview-url/:token/expire',
    needs: 'member',
    summary: 'Revokes a signed preview URL before it expires. Connections that were opened with the URL end.',
    params: ByToken,
    replies: { 200: null },
    run: ({ organization, params }) =>
      expirePreviewUrl(parts, organization.id, params.sandboxIdOrName, params.port, params.token),
  }),
]
