// Records calls through the gate for telemetry. The path of a call to a preview is not recorded: the path belongs to the sandbox,
// and the address may contain a token.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { followCall } from '#src/http/followed-call.ts'
import { decoded } from './query.ts'
import { longestName } from './target.ts'

type IsPreview = (request: IncomingMessage) => boolean

const placeIn = (request: IncomingMessage, isPreview: IsPreview) => {
  if (isPreview(request)) return { route: 'preview' }
  const [path = '/'] = (request.url ?? '/').split('?', 1)
  if (path === '/healthz') return { route: path }
  const [, name] = /^\/toolbox\/([^/]+)(?:\/|$)/.exec(path) ?? []
  const sandbox = name === undefined ? undefined : decoded(name)
  if (sandbox === undefined || sandbox.length > longestName) return {}
  return { route: '/toolbox/:sandboxIdOrName/*', attributes: { 'alcove.sandbox': sandbox } }
}

export const follow = (
  request: IncomingMessage,
  response: ServerResponse,
  isPreview: IsPreview,
  work: () => Promise<void>,
): Promise<void> => {
  const call = followCall(request)
  if (call === undefined) return work()
  response.once('close', () => {
    const status = response.headersSent ? response.statusCode : undefined
    call.end({ ...placeIn(request, isPreview), status })
  })
  return call.during(work)
}

/**
 * Records an upgrade for telemetry. The recorded time ends with the answer to the upgrade, although the connection
 * stays open after that.
 */
export const followUpgrade = async (
  request: IncomingMessage,
  isPreview: IsPreview,
  work: () => Promise<number | undefined>,
): Promise<void> => {
  const call = followCall(request)
  if (call === undefined) return void (await work())
  const status = await call.during(work)
  call.end({ ...placeIn(request, isPreview), status })
}
