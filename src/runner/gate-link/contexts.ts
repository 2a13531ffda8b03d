// Answers requests of a gate about contexts. The gate has checked who the caller is. The gate sends an end mark after an upload
// that has the length and the hash that the caller has signed. An upload without this mark is not stored.
import { Problem } from '#src/problems.ts'
import type { GateRequest } from '#src/wire/gate-link.ts'
import { ArchiveFailed } from '../archive/failed.ts'
import type { Body, ContextStore } from '../contexts/store.ts'

const askOf = (contexts: ContextStore, request: GateRequest, body: Body): Promise<unknown> | undefined => {
  switch (request.ask) {
    case 'list-contexts':
      return contexts.list(request.organizationId, request.beginning)
    case 'put-context':
      return contexts.put(request, body)
    case 'begin-upload':
      return contexts.beginUpload(request).then((uploadId) => ({ uploadId }))
    case 'put-part':
      return contexts
        .putPart(request, request.uploadId, request.part, body)
        .then(({ bytes, etag }) => ({ bytes, etag }))
    case 'complete-upload':
      return contexts.complete(request, request.uploadId, request.parts)
    case 'abort-upload':
      return contexts.abort(request, request.uploadId).then(() => ({}))
    default:
      return undefined
  }
}

/** Answers one request about contexts. If the object store fails, the error does not tell the caller where the store is. */
export const askContexts = async (contexts: ContextStore, request: GateRequest, body: Body): Promise<unknown> => {
  try {
    return await askOf(contexts, request, body)
  } catch (error) {
    if (!(error instanceof ArchiveFailed)) throw error
    const sentence =
      error.why === 'store full'
        ? 'The object store is full.'
        : 'The object store does not work at the moment. Try again later.'
    throw new Problem('unavailable', sentence, { cause: error })
  }
}
