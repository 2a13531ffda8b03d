// What the proxy asks on the runner's socket when files are uploaded. It has checked who asks, and ends a body in order only
// when all of it is what was signed: a body that breaks off has never been sent.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '#src/problems.ts'
import { ArchiveFailed } from '../archive/failed.ts'
import { type ContextName, isContextName } from './keys.ts'
import type { ContextStore, NamedPart } from './store.ts'

type Params = { organizationId: string; hash: string; uploadId: string; part: string }
type Asked = FastifyRequest<{ Params: Params; Querystring: { beginning?: string }; Body: unknown }>

const nameIn = ({ params: { organizationId, hash } }: Asked): ContextName => {
  const name = { organizationId, hash }
  if (!isContextName(name)) throw new Problem('not_found')
  return name
}

/** Whoever is refused in the middle of it hears why. */
const bodyOf = ({ raw }: Asked): AsyncIterable<Buffer> => raw.iterator({ destroyOnReturn: false })

const partsIn = ({ body }: Asked): NamedPart[] => {
  const isPart = (part: unknown): part is NamedPart => {
    const { number, etag } = (part ?? {}) as Partial<NamedPart>
    return Number.isSafeInteger(number) && typeof etag === 'string'
  }
  if (!Array.isArray(body) || !body.every(isPart)) throw new Problem('bad_request')
  return body
}

/** What a person may read of it says nothing of where the store is. */
const saidPlainly = <T>(work: (request: Asked, reply: FastifyReply) => Promise<T>) => {
  return async (request: Asked, reply: FastifyReply) => {
    try {
      return await work(request, reply)
    } catch (error) {
      if (!(error instanceof ArchiveFailed)) throw error
      const sentence = error.why === 'store full' ? 'The object store is full.' : 'The object store does not work now.'
      throw new Problem('unavailable', sentence, { cause: error })
    }
  }
}

export const serveContexts = (server: FastifyInstance, contexts: ContextStore): void => {
  const context = '/contexts/:organizationId/:hash'
  const upload = `${context}/uploads/:uploadId`
  server.get(
    '/contexts/:organizationId',
    saidPlainly(async ({ params: { organizationId }, query }) => {
      if (!isContextName({ organizationId, hash: '0'.repeat(32) })) throw new Problem('not_found')
      return await contexts.list(organizationId, String(query.beginning ?? ''))
    }),
  )
  server.post(
    `${context}/uploads`,
    saidPlainly(async (request) => ({ uploadId: await contexts.beginUpload(nameIn(request)) })),
  )
  server.post(
    upload,
    saidPlainly((request) => contexts.complete(nameIn(request), request.params.uploadId, partsIn(request))),
  )
  server.delete(
    upload,
    saidPlainly(async (request) => {
      await contexts.abort(nameIn(request), request.params.uploadId)
      return {}
    }),
  )
  // Parsers belong to a scope, and these bodies are read as they come.
  server.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, done) => done(null, undefined))
    const config = { streamsBody: true }
    scope.put(
      context,
      { config },
      saidPlainly((request) => contexts.put(nameIn(request), bodyOf(request))),
    )
    scope.put(
      `${upload}/:part`,
      { config },
      saidPlainly(async (request) => {
        const { uploadId, part } = request.params
        const { bytes, etag } = await contexts.putPart(nameIn(request), uploadId, Number(part), bodyOf(request))
        return { bytes, etag }
      }),
    )
  })
}
