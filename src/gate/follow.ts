// Traces calls through the gate. The toolbox reports the routes of its own calls. For previews and other paths, no more
// than the beginning of the path is recorded. The rest of the path belongs to the sandbox, and a preview's address may
// contain a token.
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

/** Traces an upgrade until its answer. The time after the answer, in which the connection stays open, is not traced. */
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
