// The endpoints `/preview/…`, which the proxy of an organization's own region calls.
// Each endpoint answers one question about a sandbox. Our own gates ask one endpoint for everything (access.ts).
import Type from 'typebox'
import { type ControlRoute, type ProxyContext, route } from '#src/control/auth/route.ts'
import { hashKey } from '#src/control/auth/secret.ts'
import { hasPreviewWarning } from '#src/control/organizations/service.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { findSandbox, findSandboxById } from '#src/control/sandboxes/service.ts'
import { PathText } from '#src/http/shapes.ts'
import { noSandbox } from '#src/problems.ts'
import { signedToken } from '#src/wire/access.ts'
import type { RunningParts } from '../running.ts'
import { readPort } from './preview.ts'
import { findByPreviewToken } from './preview-tokens.ts'
import { findSigned } from './signed-previews.ts'

const BySandbox = Type.Object({ sandboxId: PathText })
const ByAuthToken = Type.Object({ sandboxId: PathText, authToken: PathText })
const BySignedToken = Type.Object({ signedPreviewToken: PathText, port: PathText })
const PortQuery = Type.Object({ port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })) })
const PreviewWarning = Type.Object({ enabled: Type.Boolean() })

/** Returns the sandbox. Throws 404 if it does not exist, or if the calling proxy serves another region. */
const visible = (row: SandboxRow | undefined, { proxyRegionId }: ProxyContext, named: string): SandboxRow => {
  if (row === undefined || row.state === 'destroyed') throw noSandbox(named)
  if (proxyRegionId !== undefined && row.region_id !== proxyRegionId) throw noSandbox(named)
  return row
}

export const previewQuestionRoutes = (parts: RunningParts): ControlRoute[] => {
  const { sql } = parts.database
  const findById = async (id: string, proxy: ProxyContext) => visible(await findSandboxById(sql, id), proxy, id)
  const findByToken = async (token: string, port: number, proxy: ProxyContext) =>
    visible(await findSigned(sql, hashKey(token), port, parts.clock.now()), proxy, 'of this token')

  return [
    route({
      method: 'GET',
      path: '/preview/:sandboxId/public',
      needs: 'proxy',
      summary: 'Returns whether the previews of a sandbox are public.',
      params: BySandbox,
      replies: { 200: Type.Boolean() },
      run: async ({ params, ...proxy }) => (await findById(params.sandboxId, proxy)).public,
    }),
    route({
      method: 'GET',
      path: '/preview/:sandboxId/validate/:authToken',
      needs: 'proxy',
      summary: 'Returns whether a preview token currently gives access to a sandbox.',
      params: ByAuthToken,
      replies: { 200: Type.Boolean() },
      run: async ({ params, ...proxy }) => {
        const { id } = await findById(params.sandboxId, proxy)
        return (await findByPreviewToken(sql, params.authToken, parts.clock.now()))?.id === id
      },
    }),
    route({
      method: 'GET',
      path: '/preview/:sandboxId/preview-warning',
      needs: 'proxy',
      summary:
        'Returns whether previews first show a warning page. `sandboxId`: a sandbox’s id or, with `port`, a signed URL’s token.',
      params: BySandbox,
      query: PortQuery,
      replies: { 200: PreviewWarning },
      run: async ({ params: { sandboxId }, query: { port }, ...proxy }) => {
        const isToken = port !== undefined && signedToken.test(sandboxId)
        const row = isToken ? await findByToken(sandboxId, port, proxy) : await findById(sandboxId, proxy)
        return { enabled: await hasPreviewWarning(sql, row.organization_id) }
      },
    }),
    route({
      method: 'GET',
      path: '/preview/:signedPreviewToken/:port/sandbox-id',
      needs: 'proxy',
      summary: 'Returns the id of the sandbox whose signed preview URL has this token and port.',
      params: BySignedToken,
      replies: { 200: Type.String() },
      run: async ({ params: { signedPreviewToken, port }, ...proxy }) =>
        (await findByToken(signedPreviewToken, readPort(port), proxy)).id,
    }),
    route({
      method: 'GET',
      path: '/preview/:sandboxId/access',
      needs: 'member',
      summary: 'Returns true if the caller’s organization has the sandbox; otherwise answers 404.',
      params: BySandbox,
      replies: { 200: Type.Boolean() },
      run: async ({ organization, params: { sandboxId } }) => {
        if ((await findSandbox(sql, organization.id, sandboxId)) === undefined) throw noSandbox(sandboxId)
        return true
      },
    }),
  ]
}
